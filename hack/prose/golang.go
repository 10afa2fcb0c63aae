// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// A string of fewer words is a name, a key or a format.
const shortestText = 4

var (
	marker = regexp.MustCompile(`message="((?:[^"\\]|\\.)*)"`)
	// directive is a line of a comment for a generator.
	directive = regexp.MustCompile(`(?m)^\+.*$`)
	verb      = regexp.MustCompile(`%[-+# 0]*[\d.*]*(\[\d+\])?[a-zA-Z]`)
	// quotedWord is a value, such as "none" of an option.
	quotedWord = regexp.MustCompile(`(^|[^\w])["'][\w-]+["']`)
	// protocol is the proof by which the assessor knows that the API server enforces a guard. Its
	// words are read by a program, and stay for processes of another version.
	protocol = regexp.MustCompile(`is in force for`)
	// actionVerb is how the verb of a field comment ends, or one of the verbs that a plural has.
	actionVerb = regexp.MustCompile(`^([a-z]+s|are|bound|can|have|hold|keep|list|make|may|must|name|narrow|override|say|select)$`)
)

// goFile is a file of Go with the sentences that people see.
type goFile struct {
	set  *token.FileSet
	file *ast.File
}

func parseGo(name string, source []byte) (goFile, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return goFile{}, fmt.Errorf("reading Go: %w", err)
	}
	return goFile{set, file}, nil
}

func (g goFile) place(at token.Pos) string {
	position := g.set.Position(at)
	return fmt.Sprintf("%s:%d", position.Filename, position.Line)
}

// strings returns the sentences of the string literals: errors, help, log lines, messages of
// conditions and Events, and help of metrics. Joined literals are one text.
func (g goFile) strings() (sentences []sentence) {
	tags := map[*ast.BasicLit]bool{}
	ast.Inspect(g.file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.Field:
			tags[n.Tag] = true
		case *ast.BinaryExpr:
			if text, joined := joinLiterals(n); joined {
				sentences = append(sentences, splitText(g.place(n.Pos()), text)...)
				return false
			}
		case *ast.BasicLit:
			if text, ok := literal(n); ok && !tags[n] {
				sentences = append(sentences, splitText(g.place(n.Pos()), text)...)
			}
		}
		return true
	})
	return sentences
}

// joinLiterals returns the text of literals that are added to each other.
func joinLiterals(e ast.Expr) (string, bool) {
	switch n := e.(type) {
	case *ast.BasicLit:
		return literal(n)
	case *ast.BinaryExpr:
		left, ok := joinLiterals(n.X)
		if !ok || n.Op != token.ADD {
			return "", false
		}
		right, ok := joinLiterals(n.Y)
		return left + right, ok
	default:
		return "", false
	}
}

func literal(n *ast.BasicLit) (string, bool) {
	if n.Kind != token.STRING {
		return "", false
	}
	text, err := strconv.Unquote(n.Value)
	return text, err == nil
}

// splitText returns the sentences of a text that is not Markdown: blank lines end paragraphs,
// verbs of a format are names, and so are quoted words.
func splitText(place, text string) (sentences []sentence) {
	if protocol.MatchString(text) {
		return nil
	}
	text = quotedWord.ReplaceAllString(verb.ReplaceAllString(text, "X"), "${1}X")
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		if len(strings.Fields(paragraph)) >= shortestText {
			sentences = append(sentences, splitSentences(place, paragraph)...)
		}
	}
	return sentences
}

// messages returns the messages of the CEL rules in markers.
func (g goFile) messages() (sentences []sentence) {
	for _, group := range g.file.Comments {
		for _, comment := range group.List {
			for _, match := range marker.FindAllStringSubmatch(comment.Text, -1) {
				sentences = append(sentences, splitSentences(g.place(comment.Pos()), match[1])...)
			}
		}
	}
	return sentences
}

// comments returns the comments of declarations and fields, without markers.
func (g goFile) comments() (sentences []sentence) {
	for _, group := range g.file.Comments {
		text := directive.ReplaceAllString(group.Text(), "")
		for paragraph := range strings.SplitSeq(text, "\n\n") {
			sentences = append(sentences, splitSentences(g.place(group.Pos()), paragraph)...)
		}
	}
	return sentences
}

// nameless returns the API fields whose comment does not begin with the field's name and a verb,
// as kubectl explain needs it.
func (g goFile) nameless() (findings []string) {
	ast.Inspect(g.file, func(node ast.Node) bool {
		field, ok := node.(*ast.Field)
		if !ok || field.Tag == nil || field.Doc == nil {
			return true
		}
		name, _, _ := strings.Cut(reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json"), ",")
		words := strings.Fields(field.Doc.Text())
		if name != "" && (len(words) < 2 || words[0] != name || !actionVerb.MatchString(words[1])) {
			findings = append(findings, fmt.Sprintf("%s: the comment of field %s does not begin with %q and a verb", g.place(field.Pos()), name, name))
		}
		return true
	})
	return findings
}
