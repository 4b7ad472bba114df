"""Many runs of cassettes, and what they say together.

Nothing of the specification's own files needs this folder, but for `cli`, which
offers its commands and names what the plugin does beyond it (`cli.BEYOND`).
"""
