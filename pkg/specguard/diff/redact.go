// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/plumbline-dev/plumbline/pkg/specguard/canon"
)

// Redact replaces what looks like a secret in Before and After by a marker with
// a class of its length: never the value, nor a hash of it, which could be
// guessed offline. The values stay JSON. Replaced are
//
//   - the value of an entry whose name looks like a credential (an environment
//     variable, an HTTP header), and a string member whose key does;
//   - everything below the top-level data, binaryData and stringData, since the
//     path does not tell a Secret from a ConfigMap;
//   - the last-applied-configuration annotation, which repeats the object;
//   - in any list of strings, the argument of a flag that looks like a credential;
//   - any string that holds a URL with a password.
//
// Looks is a matter of words: password, token, key and others (see
// credentialWords). It errs on the side of hiding.
func Redact(c Change) Change {
	level := exposureOf(c.Path)
	c.Before = redactJSON(c.Before, level)
	c.After = redactJSON(c.After, level)
	return c
}

// exposure is how much of a value its path alone says to hide.
type exposure uint8

const (
	// inner: what looks like a secret inside the value.
	inner exposure = iota
	// ownText: besides, the value itself when it is a string.
	ownText
	// everything: all scalars.
	everything
)

func redactJSON(value []byte, level exposure) []byte {
	if value == nil {
		return nil
	}
	t, err := parseTree(value)
	if err != nil { // not from Compare: show nothing of it
		return canon.AppendString(nil, marker(len(value)))
	}
	if level == everything || level == ownText && t.kind == canon.String {
		t.hide()
	} else {
		t.redact()
	}
	return t.appendJSON(nil)
}

func exposureOf(p canon.Path) exposure {
	segments := p.Segments()
	for i, s := range segments {
		name := s.Name()
		beforeValue := i+1 < len(segments) && segments[i+1].Name() == "value"
		switch {
		case i == 0 && isPayload(name), beforeValue && slices.ContainsFunc(s.Keys(), namesCredential):
			return everything
		case i+1 == len(segments) && isCredentialKey(name):
			return ownText
		}
	}
	return inner
}

func namesCredential(kv canon.KeyValue) bool { return kv.Key == "name" && isCredential(kv.Value) }

// isPayload names the members of Secrets and ConfigMaps that hold the content.
func isPayload(name string) bool {
	return name == "data" || name == "stringData" || name == "binaryData"
}

// hide replaces every scalar of the value but null.
func (t *tree) hide() {
	switch t.kind {
	case canon.Map:
		for _, m := range t.members {
			m.value.hide()
		}
	case canon.List:
		for _, e := range t.elements {
			e.hide()
		}
	case canon.String, canon.Number, canon.Bool:
		t.kind, t.text = canon.String, marker(len(t.text))
	case canon.Absent, canon.Null:
	}
}

// redact hides what looks like a secret inside the value.
func (t *tree) redact() {
	switch t.kind {
	case canon.Map:
		t.redactMembers()
	case canon.List:
		t.redactElements()
	case canon.String:
		if urlPassword.MatchString(t.text) {
			t.hide()
		}
	case canon.Absent, canon.Null, canon.Bool, canon.Number:
	}
}

func (t *tree) redactMembers() {
	named := t.getAny("name").keyText()
	for _, m := range t.members {
		switch {
		case m.key == "value" && isCredential(named):
			m.value.hide()
		case m.value.kind == canon.String && isCredentialKey(m.key):
			m.value.hide()
		default:
			m.value.redact()
		}
	}
}

func (t *tree) redactElements() {
	hideNext := false
	for _, e := range t.elements {
		if e.kind != canon.String {
			hideNext = false
			e.redact()
			continue
		}
		name, value, joined := strings.Cut(e.text, "=")
		credential := isCredential(strings.TrimLeft(name, "-"))
		switch {
		case hideNext && !strings.HasPrefix(e.text, "-"):
			e.hide()
		case joined && credential:
			e.text = name + "=" + marker(len(value))
		default:
			e.redact()
		}
		hideNext = !joined && credential && strings.HasPrefix(name, "-")
	}
}

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// urlPassword finds scheme://user:password@host.
var urlPassword = regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://[^\s/@:]*:[^\s/@]+@`)

// credentialWords are looked for among the words of a name.
var credentialWords = []string{
	"apikey", "auth", "authorization", "bearer", "cookie", "credential", "credentials", "creds", "dsn",
	"key", "keys", "pass", "passphrase", "passwd", "password", "passwords", "private", "pwd", "salt",
	"secret", "secrets", "signature", "token", "tokens",
}

// credentialParts are long enough to be looked for inside words too.
var credentialParts = []string{"apikey", "credential", "passphrase", "passwd", "password", "secret", "token"}

// referenceWords end the names of members that point to a secret or describe
// one, but hold none: secretName, secretKeyRef, tokenExpirationSeconds.
var referenceWords = []string{"class", "name", "names", "namespace", "path", "ref", "refs", "seconds", "type"}

// keyWords make a "key" at the end of a member's name a secret one; without
// any, as in topologyKey, it is the key of a map.
var keyWords = []string{
	"access", "account", "api", "encryption", "hmac", "license", "master", "private", "shared", "signing", "ssh", "tls",
}

// isCredentialKey is isCredential for the keys of maps, which in Kubernetes
// often name a reference, and for the annotation that repeats everything.
func isCredentialKey(key string) bool {
	if key == lastApplied {
		return true
	}
	w := words(key)
	if len(w) == 0 || slices.Contains(referenceWords, w[len(w)-1]) {
		return false
	}
	if last := w[len(w)-1]; last == "key" || last == "keys" {
		return slices.ContainsFunc(w, func(word string) bool { return slices.Contains(keyWords, word) }) ||
			isCredential(strings.Join(w[:len(w)-1], " "))
	}
	return isCredential(key)
}

// isCredential tells whether a name looks like that of a credential.
func isCredential(name string) bool {
	for _, word := range words(name) {
		if slices.Contains(credentialWords, word) {
			return true
		}
		if slices.ContainsFunc(credentialParts, func(part string) bool { return strings.Contains(word, part) }) {
			return true
		}
	}
	return false
}

// words splits a name at everything but letters and digits, and at capitals:
// DB_PASSWORD, db-password and dbPassword have the same.
func words(name string) []string {
	var split strings.Builder
	lower := false
	for _, r := range name {
		if unicode.IsUpper(r) && lower {
			split.WriteByte(' ')
		}
		lower = unicode.IsLower(r)
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			r = ' '
		}
		split.WriteRune(unicode.ToLower(r))
	}
	return strings.Fields(split.String())
}

// marker stands for a hidden value of n bytes; it tells only how long it is
// about.
func marker(n int) string {
	if n == 0 {
		return "[redacted, empty]"
	}
	for _, limit := range []int{8, 16, 32, 64, 256} {
		if n <= limit {
			return fmt.Sprintf("[redacted, ≤%d bytes]", limit)
		}
	}
	return "[redacted, >256 bytes]"
}
