// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"regexp"
	"strings"
)

// matchGlob tells whether text matches a glob as Argo CD reads one: * and ** are
// any text, ? any character, [ab], [a-z] and [!ab] one of a class, {a,b} either,
// a brace that is open at the end is closed there. A glob that is malformed
// matches nothing, as there. The library of Argo CD has oddities that are not
// imitated: ? matches the empty text, and a star in braces not always any text.
func matchGlob(glob, text string) bool {
	re, err := regexp.Compile(globExpression(glob))
	return err == nil && re.MatchString(text)
}

func globExpression(glob string) string {
	var b strings.Builder
	b.WriteString(`\A(?s:`)
	depth, runes := 0, []rune(glob)
	for i := 0; i < len(runes); i++ {
		switch r := runes[i]; {
		case r == '\\' && i+1 < len(runes):
			i++
			b.WriteString(regexp.QuoteMeta(string(runes[i])))
		case r == '*':
			b.WriteString(".*")
		case r == '?':
			b.WriteByte('.')
		case r == '[':
			i = writeClass(&b, runes, i)
		case r == '{':
			depth++
			b.WriteString("(?:")
		case r == '}' && depth > 0:
			depth--
			b.WriteByte(')')
		case r == ',' && depth > 0:
			b.WriteByte('|')
		default:
			b.WriteString(regexp.QuoteMeta(string(r)))
		}
	}
	b.WriteString(strings.Repeat(")", depth) + `)\z`)
	return b.String()
}

// writeClass writes the class that begins at i and gives the index of its end.
func writeClass(b *strings.Builder, runes []rune, i int) int {
	end := i + 1
	for end < len(runes) && runes[end] != ']' {
		end++
	}
	if end == len(runes) {
		b.WriteByte('[') // unclosed: the expression does not compile
		return end
	}
	class := string(runes[i+1 : end])
	negated := strings.HasPrefix(class, "!")
	class = strings.NewReplacer(`\`, `\\`, `[`, `\[`, `^`, `\^`).Replace(strings.TrimPrefix(class, "!"))
	b.WriteByte('[')
	if negated {
		b.WriteByte('^')
	}
	b.WriteString(class + "]")
	return end
}
