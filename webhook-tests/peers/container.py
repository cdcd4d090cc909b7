# Becomes the process of a container: python3 container.py FILE, in a mount namespace of its own.
#
# FILE is JSON: "files" (path -> text; each in a folder that the container mounts), "argv", "env" (the whole environment).
# Folders are made in an overlay over the first part of their path, so that nothing of the machine is changed.
import json, os, subprocess, sys, tempfile

wanted = json.load(open(sys.argv[1]))
over = set()
for path, text in wanted["files"].items():
    top = "/" + path.split("/")[1]
    if top not in over:
        over.add(top)
        room = tempfile.mkdtemp()
        subprocess.run(["mount", "-t", "tmpfs", "none", room], check=True)
        upper, work = os.path.join(room, "upper"), os.path.join(room, "work")
        os.mkdir(upper)
        os.mkdir(work)
        options = f"lowerdir={top},upperdir={upper},workdir={work}"
        subprocess.run(["mount", "-t", "overlay", "none", "-o", options, top], check=True)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as file:
        file.write(text)
os.execvpe(wanted["argv"][0], wanted["argv"], wanted["env"])
