// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"bytes"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"time"
)

// Bounds of an email.
const (
	maxSubject = 150    // runes
	maxEmail   = 32_000 // bytes of text, before the transfer encoding
)

// EmailMessage is the event as a message of RFC 5322, plain text in UTF-8, with
// CRLF line ends. Nothing from the cluster reaches a header but the subject,
// which is one line and encoded by RFC 2047. The Message-ID is the same at every
// attempt, and messages about one plan refer to one thread. ErrUnknownEvent and
// an address that does not parse are the errors.
func EmailMessage(e Event, from string, to []string) ([]byte, error) {
	e = e.Bounded()
	if !e.Type.Known() {
		return nil, fmt.Errorf("rendering an email: %w", ErrUnknownEvent)
	}
	sender, err := mail.ParseAddress(from)
	if err != nil {
		return nil, fmt.Errorf("rendering an email: parsing the sender: %w", err)
	}
	recipients, err := addressList(to)
	if err != nil {
		return nil, fmt.Errorf("rendering an email: %w", err)
	}
	domain := sender.Address[strings.LastIndexByte(sender.Address, '@')+1:]
	thread := Event{Plan: e.Plan, Release: e.Release, Guard: e.Guard}.ID()
	var b bytes.Buffer
	for _, h := range [][2]string{
		{"From", sender.String()},
		{"To", recipients},
		{"Subject", subject(e)},
		{"Date", e.Time.UTC().Format(time.RFC1123Z)},
		{"Message-ID", "<" + e.ID() + "@" + domain + ">"},
		{"References", "<" + thread + "@" + domain + ">"},
		{"Auto-Submitted", "auto-generated"}, // RFC 3834: nobody's absence note answers it
		{"MIME-Version", "1.0"},
		{"Content-Type", "text/plain; charset=utf-8"},
		{"Content-Transfer-Encoding", "quoted-printable"},
	} {
		b.WriteString(h[0] + ": " + h[1] + "\r\n")
	}
	b.WriteString("\r\n")
	writeText(&b, body(e, plainQuote, plainLink, maxEmail))
	return b.Bytes(), nil
}

// writeText in the transfer encoding that keeps every line below 77 characters.
// Writing to a buffer does not fail.
func writeText(b *bytes.Buffer, text string) {
	w := quotedprintable.NewWriter(b)
	_, _ = w.Write([]byte(text))
	_ = w.Close()
}

func plainLink(url string) string { return "Open the plan: " + url }

// subject is short enough for a list of mails, folded where an encoded word
// ends. A name that looks like an encoded word is not decoded by the reader.
func subject(e Event) string {
	s := "[Plumbline] " + headline(e, plainQuote)
	if e.Severity != "" {
		s += " (" + string(e.Severity) + ")"
	}
	encoded := mime.QEncoding.Encode("utf-8", shorten(strings.ReplaceAll(s, "=?", "= ?"), maxSubject))
	return strings.ReplaceAll(encoded, "?= =?", "?=\r\n =?")
}

// addressList for a header, one address on a line.
func addressList(addresses []string) (string, error) {
	list := make([]string, len(addresses))
	for i, address := range addresses {
		parsed, err := mail.ParseAddress(address)
		if err != nil {
			return "", fmt.Errorf("parsing recipient %d: %w", i, err)
		}
		list[i] = parsed.String()
	}
	return strings.Join(list, ",\r\n "), nil
}
