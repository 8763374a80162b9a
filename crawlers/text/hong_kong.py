"""Characters of Big5 as browsers know it that no codec of Python has: HKSCS-2004 and -2008.

Each run below is the first pair of bytes and the characters of consecutive pairs. From the index
of https://encoding.spec.whatwg.org.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

_RUNS = """
877a㡵𡵓𣚞𦀡㻬𥣞㫵竼龗𤅡𨤍𣇪𠪊𣉞䌊蒄龖鐯䤰蘓 87b0墖靊鈘秐稲晠権袝瑌篅枂稬剏遆㓦珄𥶹瓆鿇垳
87c4䤯呌䄱𣚎堘穲𧭥讏䚮𦺈䆁𥶙箮𢒼鿈𢓁𢓉𢓌鿉蔄 87d8𣖻䂴鿊䓡𪷿拁灮鿋 8e69箸 8e6f簆 8e7e糎
8eab緒 8eb4縝 8ecd者 8ed0耨 8f57菁 8f69蒨 8f6e萏 8fcb覦覩 8ffe起 906d都 907a銹 90dc靜 90f1響
91bf鼖 9244蔃 92af兙兛兝兞 92c8鍮 92d1瑹 9447浧 94ca禛 95d9邗 9644靝 96ed瀞 96fc嬨 9b76爁
9b78矗 9b7b纇 9bc6駖 9bde釔 9bec惞 9bf6澶 9c42輶 9c53侻 9c62營 9c68鄄 9c6b鷰 9c77菏 9cbc尐秣
9cd0婧 9d57輋 9d5a筑 9dc4拐 9ea9恢 9eef痹 9efd汊 9f60鬮 9f66鼗 9fcb僭 9fd8弌 a063蠏 a077拎
a0d5瑨 a0df煢 a0e4牐 a3c0␀␁␂␃␄␅␆␇␈␉␊␋␌␍␎␏␐␑␒␓ a3d4␔␕␖␗␘␙␚␛␜␝␞␟␡€ c6cf廴 c6d3无 c6d5癶 c6d7隶
c6de〃仝 fa5f倩 fa66偽 fabd包 fac5卄 fad5卿 fb48嘅 fbb8婷 fbf3幵 fbf9廐 fc4f彘 fc6c悤 fcb9撐
fce2晴 fcf1杞 fdb7沜渝 fdbb港 fdf1煮 fe52猪 fe6f瑜 feaa瓩 fedd砉
"""
_TRAILS = (*range(0x40, 0x7F), *range(0xA1, 0xFF))  # second bytes, in order


def _pairs() -> Iterator[tuple[bytes, str]]:
    for run in _RUNS.split():
        lead = int(run[:2], 16)
        place = _TRAILS.index(int(run[2:4], 16))
        for offset, char in enumerate(run[4:]):
            row, cell = divmod(place + offset, len(_TRAILS))
            yield bytes([lead + row, _TRAILS[cell]]), char


HONG_KONG: Mapping[bytes, str] = dict(_pairs())
