// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// palette has the colors of both pictures, for light and for dark pages.
const palette = `:root{--paper:#fff;--ink:#1f2328;--dim:#59636e;--edge:#d1d9e0;--box:#f6f8fa;--blue:#0550ae;--green:#116329;--red:#a40e26}
@media(prefers-color-scheme:dark){:root{--paper:#0d1117;--ink:#e6edf3;--dim:#9198a1;--edge:#3d444d;--box:#151b23;--blue:#79c0ff;--green:#7ee787;--red:#ff7b72}}
`

// openPicture begins an SVG with a title and a description for screen readers.
func openPicture(width, height int, title, description, style string) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="%s">
<title>%s</title>
<desc>%s</desc>
<style>
%s%s</style>
`, width, height, width, height, escapeText(title), escapeText(title), escapeText(description), palette, style)
}

// escapeText makes a text safe in XML.
func escapeText(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder takes each write
	return b.String()
}
