import os, shutil
from pathlib import Path
import pytest
def fill(disk, leave):
    free = shutil.disk_usage(disk).free
    with open(disk/"ballast","wb") as f:
        f.write(b"x"*max(0,free-leave))
@pytest.mark.parametrize("cmd", ["import","crawl","score","scorelm","land","landbig","publish","train"])
@pytest.mark.parametrize("leave", [0, 4096, 32768, 300_000, 600_000, 1_200_000, 2_500_000, 4_000_000, 6_000_000])
def test_it(cmd, leave, small_disk, tidemark, losses_file, sites, tiny_model, tmp_path, dump):
    home = small_disk/"home"
    texts = tmp_path/"t.jsonl"; texts.write_text("".join(f'"{os.urandom(3000).hex()} {i}"\n' for i in range(400)))
    kw={}
    if cmd in("score","scorelm","train"):
        assert tidemark("import-texts",texts,"--source","x","--month","2024-01",at=home).code==0
    c={"import":("import-texts",texts,"--source","x","--month","2024-01"),
       "crawl":("crawl","-s","wikipedia_new","-s","arxiv","-s","github_projects","--month","2024-01"),
       "score":("score","-m","control:zstd"),"scorelm":("score","-m",tiny_model,"--context","64"),
       "train":("models","train","ref","--cutoff","2024-02"),
       "land":("land",losses_file("a"),losses_file("b")),
       "landbig":("land",losses_file("big",100_000)),"publish":("land",losses_file("a"))}[cmd]
    if cmd=="publish": kw["work_dir"]=tmp_path/"work"
    small_disk.joinpath("home").mkdir(exist_ok=True)
    fill(small_disk, leave)
    r=tidemark(*c,at=home,**kw)
    with open("/tmp/h/probe.log","a") as f: f.write(f"{cmd} {leave} -> {r.code} {r.err.strip()[-330:]!r} {sorted(str(p.relative_to(home)) for p in home.rglob('*') if p.is_file() and ('tmp' in p.name or 'writer' in p.name or 'warehouse' in p.name) )}\n")
    (small_disk/"ballast").unlink()
    r2=tidemark(*c,at=home,**kw)
    with open("/tmp/h/probe.log","a") as f: f.write(f"   again -> {r2.code} {r2.err.strip()[-300:]!r}\n")
    assert r2.code==0
    assert "Traceback" not in r.err
