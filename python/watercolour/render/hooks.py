"""Seams that the harness needs inside p5.brush. Pure: source text in, source text out.

The functions are those of ``harness/bounds.js`` and ``harness/record.js``. They come to know what
a sketch asks for before it is done (shapes, vertices, steps of a path, lines of a hatch, stamps of
a brush), and what is painted, in order. They fit the published build and the patched one, are cut
when a page is served, and change no pixel.

The minified names are p5.brush 2.2.2's: ``W`` and ``j`` the canvas' sides, ``q`` the renderer that
is painted on, ``nt()`` its active framebuffer, ``o()`` the current matrix, ``pt`` the state, ``er``
the place of the brush, ``sr.p`` the brush's own parameters.
"""

from __future__ import annotations

from watercolour.render.patch import AnchorError

_TARGET = "q,nt()"
_AREA = f"wcMatrix(),W,j,{_TARGET}"

#: Text of the library to what it becomes; each must be found exactly once.
SEAMS = (
    (
        "t=this,e=function(t){",
        "t=this,e=function(t){const wcH=globalThis.__watercolourHooks,wcMatrix=()=>o();",
    ),
    # Vertices of a shape, however it is given.
    (
        "vertex(t,e,r){this.vert.push([t,e,r])}",
        "vertex(t,e,r){wcH.vertices(this.vert.length+1),this.vert.push([t,e,r])}",
    ),
    ("constructor(t,e=!1){this.a=t,", "constructor(t,e=!1){wcH.vertices(t?.length),this.a=t,"),
    ("function $t(t,e=.5,r=!1){", "function $t(t,e=.5,r=!1){wcH.vertices(t?.length);"),
    (
        "this.segments.push(e),this.length+=e}",
        "wcH.segments(this.segments.push(e)),this.length+=e}",
    ),
    # Steps along a path.
    ("s=Math.round(this.length/i),a=new At(", "s=wcH.steps(Math.round(this.length/i)),a=new At("),
    ("const s=e/r,a=pt.field.isActive,c=!!n;", "const s=wcH.steps(e/r),a=pt.field.isActive,c=!!n;"),
    ("const n=e/r,i=z(-t),", "const n=wcH.steps(e/r),i=z(-t),"),
    # Lines of a hatch: a distance of 0 would never end.
    ("let d=c+.5*r,g=r;", "let d=c+.5*r,g=r;wcH.hatch(r,l-c);"),
    ("d+=g,x&&(g*=n)}return f}", "wcH.lines(f.length),d+=g,x&&(g*=n)}return f}"),
    ("function Fr(t){", 'function Fr(t){wcH.within("hatch",()=>wcHatch(t))}function wcHatch(t){'),
    (
        "function jr(t,e,i,o){",
        'function jr(t,e,i,o){wcH.within("mass",()=>wcMass(t,e,i,o))}function wcMass(t,e,i,o){',
    ),
    # Stamps of a brush, and where it goes.
    (
        "const r=sr.p?.spacing??1,n=Math.round(rr*(e?t:1)/r);",
        "const r=sr.p?.spacing??1,n=Math.round(rr*(e?t:1)/r),"
        f"wcT=wcH.stroke(n,sr.p,pt.stroke,[ue,fe,me,de,ge,xe],pe,ye,{_TARGET});",
    ),
    (
        "e&&(or=nr.angle(er.plotted)),hr(),",
        "wcT&&wcT.push(er.x,er.y),e&&(or=nr.angle(er.plotted)),hr(),",
    ),
    (
        "!function(){pr(),function(){if(0===_e)",
        "wcT&&wcH.stroked(wcT,er.x,er.y);!function(){pr(),function(){if(0===_e)",
    ),
    ("n=Math.ceil(sr.p.grain/t);for(", "n=wcH.spray(Math.ceil(sr.p.grain/t));for("),
    # Areas. A bleed that is no number would lift the library's own bound on vertices.
    (
        "Jr=2024*Math.max(.2,2*pt.fill.bleed_strength)",
        "Jr=2024*Math.max(.2,2*pt.fill.bleed_strength)||404.8",
    ),
    (
        "cn=t,ln=Infinity,hn=Infinity",
        f"wcH.fill(t.vertices,pt.fill,{_AREA}),cn=t,ln=Infinity,hn=Infinity",
    ),
    (
        "bt.blend(pt.wash.color);",
        f"wcH.wash(t.vertices,pt.wash,{_AREA}),bt.blend(pt.wash.color);",
    ),
)


def cut(source: str) -> str:
    """The text of p5.brush, published or patched, with the seams cut.

    Raises:
        AnchorError: an anchor was not found exactly once.
    """
    for anchor, replacement in SEAMS:
        found = source.count(anchor)
        if found != 1:
            raise AnchorError(f"anchor found {found} times instead of once: {anchor[:60]!r}")
        source = source.replace(anchor, replacement)
    return source
