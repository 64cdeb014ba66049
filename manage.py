#!/usr/bin/env python
"""Django's command line for this project: `manage.py help` lists the commands."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "responses_site.settings")
    from django.core.management import execute_from_command_line
    from django.db import OperationalError

    try:
        execute_from_command_line(sys.argv)
    except OperationalError as error:
        sys.exit(f"error: The database can't be used: {' '.join(str(error).split())}. DATABASE_URL says where it is.")


if __name__ == "__main__":
    main()
