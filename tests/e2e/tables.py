#!/usr/bin/env python3
"""The tables of docs/policies.md say what `sharewell policies --json` says. Usage: tables.py [--update] PAGE

A table stands between "<!-- parameters: POLICY -->" (or "<!-- placements -->") and "<!-- end -->". Every policy must have one. --update
writes them. Environment: SHAREWELL, the program.
"""
import json
import os
import re
import subprocess
import sys

BLOCK = re.compile(r"<!-- (parameters: ([\w-]+)|placements) -->\n(.*?)<!-- end -->\n", re.S)


def table(head, rows):
    lines = ["| " + " | ".join(cells) + " |" for cells in [head, *rows]]
    lines.insert(1, "|" + "---|" * len(head))
    return "\n".join(lines) + "\n"


def escape(text):
    return text.replace("|", "\\|")


def parameters(policy):
    if not policy["parameters"]:
        return "It takes no parameters.\n"
    rows = [[f"`{policy['name']}.{p['name']}`", p["kind"], f"`{p['preset']}`" if p["preset"] else "none", escape(p["about"])]
            for p in policy["parameters"]]
    return table(["parameter", "kind", "preset", "what it does"], rows)


def main():
    update = "--update" in sys.argv
    path = [a for a in sys.argv[1:] if a != "--update"][0]
    known = json.loads(subprocess.run([os.environ["SHAREWELL"], "policies", "--json"], check=True, stdout=subprocess.PIPE).stdout)
    policies = {p["name"]: p for p in known["policies"]}
    with open(path, encoding="utf-8") as file:
        text = file.read()
    problems, seen = [], set()

    def wanted(match):
        name = match.group(2)
        seen.add(name)
        if name is not None and name not in policies:
            problems.append(f"there is no policy '{name}'")
            return match.group(0)
        body = parameters(policies[name]) if name else table(["rule", "where jobs go"], [[f"`{p['name']}`", escape(p["about"])] for p in known["placements"]])
        if body != match.group(3) and not update:
            problems.append(f"the table of {name or 'the placement rules'} should be:\n{body}")
        return f"<!-- {match.group(1)} -->\n{body}<!-- end -->\n"

    new = BLOCK.sub(wanted, text)
    problems += [f"policy '{name}' has no table" for name in policies if name not in seen]
    problems += [] if None in seen else ["the placement rules have no table"]
    if update and new != text:
        with open(path, "w", encoding="utf-8") as file:
            file.write(new)
    print("not ok" if problems else "ok", f"- {os.path.basename(path)}: its {len(seen)} tables say what the program says")
    for problem in problems:
        print("# " + problem.replace("\n", "\n# "))
    sys.exit(1 if problems else 0)


main()
