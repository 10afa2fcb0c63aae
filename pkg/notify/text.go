// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ellipsis stands for what was cut off.
const ellipsis = "…"

// clean makes one line of at most limit runes: what has no shape of its own
// (control characters, line breaks, direction marks, zero-width and unassigned
// ones, broken UTF-8) separates words like a space, and spaces are single.
func clean(s string, limit int) string {
	// A rune has at most 4 bytes; what is far over the bound is not looked at.
	// The slack lets spaces that fold together not shorten ordinary text.
	if most := 8 * limit; len(s) > most {
		s = s[:most]
	}
	s = strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsGraphic(r) {
			return ' '
		}
		return r
	}, s)
	return shorten(strings.Join(strings.Fields(s), " "), limit)
}

// shorten to limit runes, the last of them an ellipsis when something was cut.
func shorten(s string, limit int) string {
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	runes := []rune(s)[:limit-1]
	return strings.TrimRight(string(runes), " ") + ellipsis
}

// defang keeps readers from turning text into a link, by the convention of
// incident reports.
func defang(s string) string {
	return strings.ReplaceAll(s, "://", "[:]//")
}

// chatEscaper escapes what Slack's formatting documents as its three control
// characters.
var chatEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// chatQuote writes text that is not ours into a chat: as code, where neither
// Slack nor Mattermost formats, links or mentions, and without the characters
// that would end the code or, in a receiver that thinks otherwise, mention
// somebody. Mattermost ignores Slack's link_names and parse, so escaping alone
// would not do.
func chatQuote(s string) string {
	s = strings.NewReplacer("`", "'", "@", "＠").Replace(defang(s))
	return "`" + chatEscaper.Replace(s) + "`"
}

// plainQuote writes text that is not ours into plain text.
func plainQuote(s string) string { return defang(s) }

// safeLink is the link when it is an absolute https URL without a user in it and
// of harmless characters, else "". What Mattermost would read as the end of a
// link is percent-encoded.
func safeLink(s string) string {
	if len(s) > maxLink || strings.ContainsFunc(s, func(r rune) bool { return !linkRune(r) }) {
		return ""
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return ""
	}
	return strings.NewReplacer("(", "%28", ")", "%29", "@", "%40", "*", "%2A", "'", "%27").Replace(s)
}

// linkRune is a character that RFC 3986 allows in a URL; square brackets only
// serve addresses of IPv6, which no console is linked by.
func linkRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' ||
		strings.ContainsRune("-._~:/?#@!$&'()*+,;=%", r)
}
