import yaml
from pathlib import Path
from tests.unit.operator.desired.made import build, find
def test_keda(api, namespace):
    crd = yaml.safe_load(Path("/tmp/builders/gomod/github.com/kedacore/keda/v2@v2.21.0/config/crd/bases/keda.sh_scaledobjects.yaml").read_text())
    api.apply(crd)
    api.until_one("CustomResourceDefinition", crd["metadata"]["name"], None, lambda c: any(x["type"]=="Established" and x["status"]=="True" for x in c.get("status",{}).get("conditions",[])))
    from tests.cluster.ground.api import KINDS, Kind
    KINDS["ScaledObject"]=Kind("keda.sh/v1alpha1","scaledobjects")
    for f in ({}, {"idleSeconds": 5.5, "perPod": 3, "min": 2}):
        item = find(build({"renderers":{"scaling":{"mode":"KEDA", **f}}}), "ScaledObject", "peonies-renderers")
        item["metadata"]["namespace"]=namespace; item["metadata"]["ownerReferences"]=[]
        got = api.apply(item)
        def sub(a,b,p=""):
            if isinstance(a,dict):
                for k in a:
                    if k=="ownerReferences": continue
                    assert k in b, p+"."+k
                    sub(a[k],b[k],p+"."+k)
            elif isinstance(a,list):
                assert len(a)==len(b),p
                for x,y in zip(a,b): sub(x,y,p)
            else: assert a==b,(p,a,b)
        sub(item,got)
