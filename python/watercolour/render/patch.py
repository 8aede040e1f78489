"""Our own changes to the pinned p5.brush build. Pure: source text in, source text out.

What changes and why:

* the pigment shader. Stock p5.brush rebuilds two 38-band reflectance curves for every pixel of a
  fill. The pigment is one uniform colour, so its half is worked out once a blend on the CPU, the
  background's luminance is one dot product, and the two linear maps bands -> XYZ -> linear sRGB
  are multiplied beforehand: one loop is left (facts: Kubelka-Munk mixing after spectral.js);
* neighbouring bands whose reflectance hardly differs and whose weight is tiny share one band;
* the mask canvas says ``willReadFrequently``, so that Chromium rasters it on the CPU whatever the
  flags are: some tens of thousands of path fills a painting are slow on a software GPU;
* polygons of a fill are flat arrays in buffers that are used again (``harness/fill.js``);
* circles that would erase where nothing has been painted since the last blend are not drawn
  (about a quarter of some two thousand a shape; the picture stays the same byte for byte);
* border strokes that are thinner than a pixel at one 255th of opacity are not drawn: a pixel that
  they cover in part rounds to nothing (measured; not so where the canvas is moved or turned);
* a stamp of a brush covers a pixel of the canvas at least, of which a print has several;
* a fill's mask goes to the GPU as it is and one triangle is drawn with it, where the original has
  p5 copy, clear and draw (``harness/blend.js``); its colour is taken apart once a shape;
* a counter that the harness sets before the library loads is told of every filled shape.

Brush strokes, whose pigment varies from pixel to pixel, keep the stock function.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

#: Goes into every painting's version record; raise it with any change that may alter pixels.
PATCH_VERSION = "2.2.2-wc3"

#: Bands 0-based, that are averaged into one: both ends of the visible range, where the eye's
#: weights are at most 0.012 and the seven basis curves move by less than 0.004.
MERGED = ((0, 1, 2, 3, 4), tuple(range(29, 38)))

#: Linear sRGB from CIE XYZ (D65), row by row, as in the stock shader.
XYZ_TO_RGB = (
    (3.2409699419045200, -1.537383177570090, -0.4986107602930030),
    (-0.9692436362808790, 1.875967501507720, 0.0415550574071756),
    (0.0556300796969936, -0.203976958888976, 1.0569715142428700),
)

EPSILON = 1e-4


class AnchorError(ValueError):
    """The library's text is not the one that this patch was written for."""


@dataclass(frozen=True)
class Bands:
    """The stock shader's constants.

    Attributes:
        basis: per band the reflectance of white, cyan, magenta, yellow, red, green, blue.
        xyz: per band the weights in X, Y and Z.
    """

    basis: tuple[tuple[float, ...], ...]
    xyz: tuple[tuple[float, ...], ...]


_NUMBER = r"(\d+\.\d+)"
_BASIS = re.compile(
    r"R\[(\d+)\]=max\(SPECTRAL_EPSILON,"
    + r"\+".join(rf"{name}\*{_NUMBER}" for name in "wcmyrgb")
    + r"\);"
)
_XYZ = re.compile(rf"xyz\+=R\[(\d+)\]\*vec3\({_NUMBER},{_NUMBER},{_NUMBER}\);")


def read_bands(source: str) -> Bands:
    """The 38 bands' constants out of the shader's text.

    Raises:
        AnchorError: not exactly 38 bands were found.
    """
    tables: list[tuple[tuple[float, ...], ...]] = []
    for pattern in (_BASIS, _XYZ):
        rows = [match.groups() for match in pattern.finditer(source)]
        if [int(row[0]) for row in rows] != list(range(38)):
            raise AnchorError(f"expected bands 0 to 37, found {len(rows)} in the pigment shader")
        tables.append(tuple(tuple(float(value) for value in row[1:]) for row in rows))
    return Bands(*tables)


def merge(bands: Bands, groups: tuple[tuple[int, ...], ...] = MERGED) -> Bands:
    """Replace each group of bands by one: weights summed, basis averaged by its weight in XYZ."""
    basis: list[tuple[float, ...]] = []
    xyz: list[tuple[float, ...]] = []
    first = {group[0]: group for group in groups}
    skipped = {band for group in groups for band in group[1:]}
    for band in range(len(bands.basis)):
        if band in skipped:
            continue
        group = first.get(band, (band,))
        weights = [sum(bands.xyz[member]) for member in group]
        total = sum(weights)
        basis.append(
            tuple(
                sum(w * bands.basis[m][i] for w, m in zip(weights, group, strict=True)) / total
                for i in range(7)
            )
        )
        xyz.append(tuple(sum(bands.xyz[member][i] for member in group) for i in range(3)))
    return Bands(tuple(basis), tuple(xyz))


def _number(value: float) -> str:
    text = f"{value:.10f}"
    return "0.0" if float(text) == 0 else text


def fused_shader(bands: Bands) -> str:
    """GLSL: ``wc_fused(background, t)``, the pigment coming in as uniforms."""
    luminance = [
        sum(b[i] * x[1] for b, x in zip(bands.basis, bands.xyz, strict=True)) for i in range(7)
    ]
    lines: list[str] = []
    for index, (basis, xyz) in enumerate(zip(bands.basis, bands.xyz, strict=True)):
        reflectance = "+".join(
            f"{name}*{_number(value)}" for name, value in zip("wcmyrgb", basis, strict=True)
        )
        rgb = ",".join(
            _number(sum(r * x for r, x in zip(row, xyz, strict=True))) for row in XYZ_TO_RGB
        )
        lines.append(
            f"R=max(SPECTRAL_EPSILON,{reflectance});q=1.0-R;k=cB*(q*q)/(2.0*R)+cP*u_ks[{index}];"
            f"rgb+=(1.0+k-sqrt(k*k+2.0*k))*vec3({rgb});"
        )
    total = "+".join(
        f"{name}*{_number(value)}" for name, value in zip("wcmyrgb", luminance, strict=True)
    )
    return (
        f"uniform float u_ks[{len(bands.basis)}];uniform float u_lum;"
        "vec3 wc_fused(vec3 color,float t){vec3 l=spectral_srgb_to_linear(color);"
        "float w=min(l.r,min(l.g,l.b));l-=w;float c=min(l.g,l.b);float m=min(l.r,l.b);"
        "float y=min(l.r,l.g);float r=min(max(0.0,l.r-l.b),max(0.0,l.r-l.g));"
        "float g=min(max(0.0,l.g-l.b),max(0.0,l.g-l.r));"
        "float b=min(max(0.0,l.b-l.g),max(0.0,l.b-l.r));"
        f"float cB=(1.0-t)*(1.0-t)*max(SPECTRAL_EPSILON,{total});float cP=t*t*u_lum;"
        "float s=1.0/(cB+cP);cB*=s;cP*=s;vec3 rgb=vec3(0.0);float R,q,k;"
        + "".join(lines)
        + "return spectral_linear_to_srgb(rgb);}"
    )


def pigment_script(bands: Bands) -> str:
    """JavaScript: ``wcPigment(colour)`` gives {ks, lum} of one sRGB colour, the last one cached."""
    basis = "[" + ",".join("[" + ",".join(map(_number, row)) + "]" for row in bands.basis) + "]"
    ybar = "[" + ",".join(_number(row[1]) for row in bands.xyz) + "]"
    return (
        f"const wcB={basis},wcY={ybar};let wcLast=null;"
        "const wcLin=x=>x<0.04045?x/12.92:Math.pow((x+0.055)/1.055,2.4);"
        "const wcPigment=u=>{if(wcLast&&wcLast.u[0]===u[0]&&wcLast.u[1]===u[1]&&wcLast.u[2]===u[2])"
        "return wcLast;let r=wcLin(u[0]),g=wcLin(u[1]),b=wcLin(u[2]);"
        "const w=Math.min(r,g,b);r-=w;g-=w;b-=w;"
        "const p=[w,Math.min(g,b),Math.min(r,b),Math.min(r,g),"
        "Math.min(Math.max(0,r-b),Math.max(0,r-g)),Math.min(Math.max(0,g-b),Math.max(0,g-r)),"
        "Math.min(Math.max(0,b-g),Math.max(0,b-r))];const ks=[];let lum=0;"
        "for(let i=0;i<wcB.length;i++){let R=0;for(let j=0;j<7;j++)R+=p[j]*wcB[i][j];"
        f"R=Math.max({EPSILON},R);ks.push((1-R)*(1-R)/(2*R));lum+=R*wcY[i]}}"
        "return wcLast={u:[u[0],u[1],u[2]],ks,lum}},"
        'wcTint=(e,i)=>{const c=wcPigment(i);e.setUniform("u_ks",c.ks);'
        'e.setUniform("u_lum",c.lum)};'
    )


#: JavaScript inside p5.brush, whose minified names it uses: ``bt`` the compositor with its 2D
#: context and mask, ``pt`` the state. ``wcReach(matrix)`` gives a test whether a circle can touch
#: what the mask holds; ``wcFaint(matrix)`` tells whether the border stroke vanishes in rounding.
MASK_SCRIPT = """
const wcScale=m=>Math.max(Math.hypot(m.a,m.b),Math.hypot(m.c,m.d)),
wcFaint=m=>2.55*pt.fill.border_strength<1.5&&!!m&&m.isIdentity&&bt.ctx.lineWidth<1,
wcReach=m=>{const d=bt.mask.dirtyRect,k=1.42*wcScale(m);return(x,y,r)=>{if(!d)return!1;
const X=m.a*x+m.c*y+m.e,Y=m.b*x+m.d*y+m.f,R=k*r+2;
return X+R>d.minX&&X-R<d.maxX&&Y+R>d.minY&&Y-R<d.maxY}};
""".replace("\n", "")


#: The stock fill's loop over its twenty layers, which ``harness/fill.js`` replaces.
FILL_LOOP = (
    "let m;for(let r=0;r<20;r++){r%4==0&&(u=u.grow()),r%2==0&&(m=[u.grow(1-.0125*r),"
    "u.grow(.7-.0125*r),u.grow(.4-.0125*r)]);for(const t of m)t.grow(999).grow(997)"
    ".layer(r,l,i,c);pt.fill.scatter&&f.grow(999).flipDirs().grow(997).layer(r,l,i*n,c),"
    "r%2==0&&u.grow(h).grow(999).layer(r,l,2*i,c),r%8!=0&&19!==r||"
    "(0!==n&&u.erase(3*n,e),bt.blend(t,!0))}bt.ctx.restore()}"
)
HARNESS = Path(__file__).parent / "harness"
FILL = HARNESS / "fill.js"
BLEND = HARNESS / "blend.js"


def blend_script(source: str, bands: Bands) -> str:
    """JavaScript: the two shaders of ``harness/blend.js`` and that file.

    Raises:
        AnchorError: the stock shader's text has other parts.
    """
    head, found, _ = source.partition("void spectral_linear_to_reflectance(")
    _, start, functions = head.rpartition("const int SPECTRAL_SIZE=38;")
    if not (found and start):
        raise AnchorError("the pigment shader's first functions were not found")
    version = "#version 300 es\nprecision highp float;precision highp int;"
    fragment = (
        f"{version}uniform sampler2D u_source;uniform sampler2D u_mask;out vec4 outColor;"
        f"{functions}{fused_shader(bands)}"
        "void main(){ivec2 last=textureSize(u_mask,0)-1;ivec2 at=ivec2(gl_FragCoord.xy);"
        "vec4 source=texelFetch(u_source,at,0);at.y=last.y-at.y;"
        "float alpha=texelFetch(u_mask,at,0).r;if(alpha==0.0){outColor=source;return;}"
        "float edge=0.0;for(int i=-2;i<=2;i+=2){for(int j=-2;j<=2;j+=2){"
        "float near=texelFetch(u_mask,clamp(at+ivec2(i,j),ivec2(0),last),0).r*15.0;"
        "edge+=smoothstep(0.05,0.35,length(vec2(dFdx(near),dFdy(near))));}}edge/=9.0;"
        "outColor=vec4(wc_fused(mix(vec3(1.0),source.rgb,source.a),"
        "clamp(alpha+edge*0.1,0.0,1.0)),1.0);}"
    )
    vertex = (
        f"{version}void main(){{vec2 p=vec2(gl_VertexID==0?3.0:-1.0,gl_VertexID==1?3.0:-1.0);"
        "gl_Position=vec4(p,0.0,1.0);}"
    )
    texts = f"const WC_VERTEX={json.dumps(vertex)},WC_FRAGMENT={json.dumps(fragment)};"
    return texts + BLEND.read_text(encoding="utf-8")


def _replace(source: str, anchor: str, replacement: str) -> str:
    found = source.count(anchor)
    if found != 1:
        raise AnchorError(f"anchor found {found} times instead of once: {anchor[:60]!r}")
    return source.replace(anchor, replacement)


def apply(source: str) -> str:
    """The patched text of ``p5.brush.js`` 2.2.2.

    Raises:
        AnchorError: an anchor was not found exactly once, or the shader has other constants.
    """
    bands = merge(read_bands(source))
    mix = "spectral_mix(bgColor,pigment.rgb,mixIntensity)"
    edits = (
        (
            "const float GAMMA=2.4,EPSILON=0.0001;",
            fused_shader(bands) + "const float GAMMA=2.4,EPSILON=0.0001;",
        ),
        (
            f"outColor=vec4({mix},1.);",
            f"outColor=vec4(u_isBrush?{mix}:wc_fused(bgColor,mixIntensity),1.);",
        ),
        (
            'e.setUniform("u_color",i)',
            'e.setUniform("u_color",i),o||wcTint(e,i)',
        ),
        (
            'n.getContext("2d",r?{willReadFrequently:!0}:void 0)',
            'n.getContext("2d",{willReadFrequently:!0})',
        ),
        (
            "e=function(t){const e={a:1,b:0,c:0,d:1,x:0,y:0};",
            "e=function(t){"
            + pigment_script(bands)
            + MASK_SCRIPT
            + "const e={a:1,b:0,c:0,d:1,x:0,y:0};",
        ),
        ("fill(t,e,r){const n=3*r,", "fill(t,e,r){t={_array:t._array};const n=3*r,"),
        (
            "class gn{",
            FILL.read_text(encoding="utf-8") + blend_script(source, bands) + "class gn{",
        ),
        (
            "s=!!i,a=(e?lt:ht).getShaderMask(",
            "s=!!i;if(!e&&!s&&wcPlain()){wcBlend(o,t,r,this.cachedColor);this.clearMask(t);return}"
            "const a=(e?lt:ht).getShaderMask(",
        ),
        (FILL_LOOP, "wcPaint(this,u,f,h,l,i,n,c,t,e);bt.ctx.restore()}"),
        (
            'bt.ctx.globalCompositeOperation="destination-out";',
            "const wcNear=wcReach(bt.ctx.getTransform());"
            'bt.ctx.globalCompositeOperation="destination-out";',
        ),
        (
            "bt.ctx.beginPath(),qr(e,r,o),t%5!=0&&bt.ctx.fill()",
            "t%5!=0&&wcNear(e,r,o/2)&&(bt.ctx.beginPath(),qr(e,r,o),bt.ctx.fill())",
        ),
        (
            "return()=>{e=e+1831565813|0;",
            "return Object.assign(()=>{e=e+1831565813|0;",
        ),
        (
            "2.3283064365386963e-10*((t^t>>>14)>>>0)}}let d=",
            "2.3283064365386963e-10*((t^t>>>14)>>>0)},{wcGet:()=>e,wcSet:t=>{e=t}})}let d=",
        ),
        (
            "gl_PointSize=a_radius*2.0;}",
            'gl_PointSize="+(K>1?"max(a_radius*2.0,"+K.toFixed(1)+")":"a_radius*2.0")+";}',
        ),
        ("//# sourceMappingURL=p5.brush.js.map", ""),
    )
    for anchor, replacement in edits:
        source = _replace(source, anchor, replacement)
    return source
