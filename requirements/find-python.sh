# Prints the first Python 3.11 to 3.13 that runs and can make an environment; PYTHON names one.
# A name on the path proves nothing: version managers leave stubs that only fail.
for python in ${PYTHON:-python3 python3.13 python3.12 python3.11 python}; do
    if "$python" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
        echo "$python"
        exit 0
    fi
done
echo "No Python 3.11, 3.12 or 3.13 with venv was found${PYTHON:+ as $PYTHON}. Install one (on Debian: python3-venv) or name it: make PYTHON=/path/to/python3" >&2
exit 1
