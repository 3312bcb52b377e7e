"""Files inside the workspace that a program of the user will act on later: hooks, configuration, editors' tasks."""
import os

from case import decided, inside, present, refused, tree, writes

CASES = []
REPOSITORY = """
    cd "$WS" && git -c init.defaultBranch=main init -q && git add f && git -c user.name=a -c user.email=a@b commit -qm one
    echo '#!/bin/sh' > .git/hooks/post-merge; chmod +x .git/hooks/post-merge
    """


def git_changed(*below):
    """The named parts of .git must be as they were."""
    def effect(w):
        top = w.ws + "/.git"
        if os.path.islink(top) or not os.path.isdir(top):
            return ".git is not the folder it was"

        def parts(found):
            return {path: (what["mode"], what["content"]) for path, what in found.items()
                    if any(path == f"{top}/{part}" or path.startswith(f"{top}/{part}/") for part in below)}
        before, now = parts(w.before_ws), parts(tree(top))
        changed = sorted(path for path in before.keys() | now.keys() if before.get(path) != now.get(path))
        return changed and os.path.relpath(changed[0], w.ws) + " was changed"
    return effect


def planted(name, run, effect=None, **more):
    CASES.append(refused("git-" + name, run, effect or git_changed("hooks", "config", "info"),
                         setup=more.pop("setup", REPOSITORY), **more))


planted("hook-planted", "printf '#!/bin/sh\\ntouch /tmp/x\\n' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit")
planted("hook-edited", "echo 'touch /tmp/x' >> .git/hooks/post-merge")
planted("hook-replaced", "cp f x && mv x .git/hooks/post-merge")
planted("hook-linked", "ln -sf ../../f .git/hooks/pre-push")
planted("hooks-folder-replaced", "mkdir h; echo x > h/pre-commit; rm -rf .git/hooks; mv h .git/hooks")
planted("hooks-folder-linked", "mkdir h; echo x > h/pre-commit; rm -rf .git/hooks; ln -s ../h .git/hooks")
planted("hooks-folder-exchanged", 'mkdir h; echo x > h/pre-commit; "$ATTACK" exchange h .git/hooks')
planted("configuration-by-command", "git config core.fsmonitor 'touch /tmp/x'")
planted("configuration-by-edit", "printf '[core]\\n\\thooksPath = ../h\\n' >> .git/config")
planted("configuration-replaced", "cp .git/config c; echo '[alias]' >> c; mv c .git/config")
planted("attributes-planted", "mkdir -p .git/info; echo '* filter=x' > .git/info/attributes")
planted("folder-renamed-and-made-anew", "mv .git old && mkdir -p .git/hooks && echo x > .git/hooks/pre-commit",
        present("ws/old"))
planted("folder-exchanged", 'cp -r .git g; echo x > g/hooks/pre-commit; "$ATTACK" exchange g .git')
planted("folder-linked", "mv .git old; ln -s old .git", present("ws/old"))
planted("folder-removed", "rm -rf .git", lambda w: not os.path.exists(w.ws + "/.git/HEAD") and ".git was removed")
planted("worktree-configuration", "git config --worktree core.editor 'touch /tmp/x'; printf '[core]\\n\\tfsmonitor = x\\n' > .git/config.worktree",
        git_changed("config", "config.worktree"))
planted("worktree-elsewhere-configuration",
        "printf '[core]\\n\\tfsmonitor = x\\n' > .git/worktrees/feature/config.worktree; mkdir p; "
        "cp .git/config p/config.worktree; mv -T .git/worktrees/feature o; mv -T p .git/worktrees/feature; "
        "ln -sT ../../p .git/worktrees/feature; \"$ATTACK\" exchange p .git/worktrees/feature",
        git_changed("worktrees/feature/config.worktree"),
        setup=REPOSITORY + 'git config extensions.worktreeConfig true; git worktree add -q "$BASE/r/feature"')
for name, run in (("by-its-own-way", "echo ../evil > /proc/self/cwd/.git/commondir; cd .git; echo ../evil > /proc/self/cwd/commondir; "
                   "exec 8<.; echo ../evil > /dev/fd/8/commondir; ln -s /proc/self/cwd ../x; echo ../evil > ../x/../.git/commondir"),
                  ("by-a-move", 'echo ../evil > n; mv n /proc/self/cwd/.git/commondir; "$ATTACK" tmpfile "$WS/.git" commondir'),
                  ("by-a-socket", "/usr/bin/python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\".git/commondir\")'"),
                  ("by-another-repository", "cp -r .git evil; echo ../evil > evil/commondir; mv -T .git o; mv -T evil .git")):
    planted("common-folder-" + name, run, present("ws/.git/commondir"))
planted("submodule-to-be", "mkdir -p .git/modules/m; cp -r .git/hooks .git/modules/m; mv .git/hooks .git/modules",
        git_changed("modules"))
planted("closed-and-opened-again", "chmod 755 .git; echo x > .git/hooks/pre-commit", git_changed("hooks"),
        setup=REPOSITORY + "chmod 000 .git", undo=lambda w: os.chmod(w.ws + "/.git", 0o755))
planted("bare-hook", "echo x > hooks/pre-receive; echo x >> config", lambda w: os.path.exists(w.ws + "/hooks/pre-receive")
        and "hooks/pre-receive was made", setup='cd "$WS"; git init -q --bare .; mkdir -p hooks')
planted("submodule-hook", "echo x > .git/modules/m/hooks/pre-commit", git_changed("modules/m/hooks"),
        setup=REPOSITORY + "git init -q --bare .git/modules/m; mkdir -p .git/modules/m/hooks")
planted("nested-repository-hook", "echo x > sub/.git/hooks/pre-commit", present("ws/sub/.git/hooks/pre-commit"),
        setup=REPOSITORY + "git init -q sub; mkdir -p sub/.git/hooks")
planted("pointer-file-changed", "echo 'gitdir: ../evil' > wt/.git",
        lambda w: "evil" in open(w.ws + "/wt/.git", encoding="utf-8").read() and "changed",
        setup=REPOSITORY + "mkdir wt; echo 'gitdir: ../.git/worktrees/wt' > wt/.git")

for name, path in (("vscode-tasks", ".vscode/tasks.json"), ("vscode-settings", ".vscode/settings.json"),
                   ("idea", ".idea/workspace.xml"), ("mcp", ".mcp.json"), ("envrc", ".envrc"),
                   ("claude", ".claude/settings.json"), ("cursor", ".cursor/mcp.json"),
                   ("devcontainer", ".devcontainer/devcontainer.json"), ("husky", ".husky/pre-commit")):
    folder = os.path.dirname(path)
    CASES.append(refused(f"tool-file-{name}-edited", f"echo PWN >> {path}", inside,
                         setup=f'cd "$WS"; mkdir -p {folder or "."}; echo x > {path}'))
CASES += [
    refused("tool-folder-renamed-and-made-anew", "mv .vscode v && mkdir .vscode && echo PWN > .vscode/tasks.json",
            present("ws/v"),
            setup='mkdir "$WS/.vscode"; echo x > "$WS/.vscode/tasks.json"'),
    refused("tool-folder-planted", "mkdir .vscode && echo PWN > .vscode/tasks.json", present("ws/.vscode/tasks.json")),
    decided("new-repository-planted", "git init -q sub && mkdir -p sub/.git/hooks && echo x > sub/.git/hooks/pre-commit",
            present("ws/sub/.git/hooks/pre-commit"), "a folder of the project's own; nothing outside points to it"),
    decided("build-files-edited", "echo PWN > Makefile; echo PWN > package.json; mkdir -p .github/workflows; echo PWN > .github/workflows/x.yml",
            present("ws/Makefile"), "files of the project, which are there to be edited; look before you run them"),
]

# What must go on working in a repository.
IDENTITY = "git -c user.name=a -c user.email=a@b"


def git_works(name, run, path="ws/result", setup=REPOSITORY):
    CASES.append(writes("git-" + name, run + " && touch result", present(path), setup=setup))


git_works("commit", f"echo 2 >> f && git add f && {IDENTITY} commit -qm two")
git_works("branch-and-merge", f"git checkout -qb b && echo 2 >> f && {IDENTITY} commit -qam two && git checkout -q main && git merge -q b")
git_works("stash", f"echo 2 >> f && {IDENTITY} stash -q && {IDENTITY} stash pop -q")
git_works("rebase", f"git checkout -qb b && {IDENTITY} commit -q --allow-empty -m e && git checkout -q main && {IDENTITY} rebase -q b")
git_works("clone", "git clone -q . c && test -f c/f")
git_works("worktree", "git worktree add -q -b w w && test -f w/f")
git_works("pack", "git gc -q && git fsck")
