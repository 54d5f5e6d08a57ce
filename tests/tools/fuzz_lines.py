import os, sys, random, re, shutil, tempfile, warnings, time
from pathlib import Path
sys.path.insert(0, str(Path(__file__).parents[2]))
from tests.support.field_values import write_files
from tests.support.one_command import call, faults
from tests.support.random_scenarios import random_tables
from tests.support.random_texts import *
from tests.tools.fuzz import Plain
TEXT = Path(__file__).parents[2].joinpath("scenarios/quickstart.toml").read_text()
TEXT2 = '''name = "tiny"
crowd = { clients = 6 }
learning = { kind = "none", model_bits = 1e6 }
network = "pause-two-speed"
[devices]
compute = "zero"
[rounds]
count = 2
policy = { kind = "deadline", deadline_s = 5.0 }
[selector]
kind = "uniform"
cohort = 2
'''
warnings.simplefilter("error", RuntimeWarning)
os.environ["FEDSIM_STORE"] = "none"; os.environ["FEDSIM_EXECUTOR"] = "sequential"
from fedsim.results import recording
recording.draw = lambda *a, **k: None
mode, first, n = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
d=tempfile.mkdtemp(); os.chdir(d); write_files(Path(d)); os.environ["FEDSIM_DATA"]=d
Path("case.toml").write_text(TEXT2)
r=call(["run","case.toml","--out","run"]); print(r.code, r.errors)
from collections import Counter
keep={}; codes=Counter(); c0=time.process_time()
for seed in range(first, first+n):
    dr=Plain(seed)
    if mode=="texts":
        t=random_text(dr, TEXT2); Path("mut.toml").write_bytes(t)
        e=call(["run","mut.toml","--out","x","-q"]); show=repr(t); fs=faults(e,Path("x"))
    else:
        line=random_line(dr); 
        if "--download" in line: continue
        e=call(line); show=repr(line); fs=faults(e)
        if e.code==1 and "store" in line: fs=[f for f in fs if not f.startswith("exit code 1")or "should not" in f]
    codes[e.code]+=1
    for f in fs:
        k=re.sub(r"\d+","#",f)[:300]
        if k not in keep: keep[k]=1; print("=== seed",seed,f,"\n",show,flush=True)
    for p in Path(d).iterdir():
        if p.name not in ("one","two","case.toml","run","mut.toml"):
            shutil.rmtree(p) if p.is_dir() and not p.is_symlink() else p.unlink()
print(codes, time.process_time()-c0)
shutil.rmtree(d)
