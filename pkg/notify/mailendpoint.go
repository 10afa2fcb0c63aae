// SPDX-License-Identifier: Apache-2.0

package notify

import (
	"errors"
	"net/mail"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation"
)

// TLSMode is how a connection to a mail server is encrypted; there is none that
// is not.
type TLSMode string

// The ways to TLS.
const (
	// StartTLS begins in the clear and refuses to go on without TLS: smtp://, port
	// 587 unless another is given.
	StartTLS TLSMode = "StartTLS"
	// ImplicitTLS encrypts from the first byte: smtps://, port 465.
	ImplicitTLS TLSMode = "Implicit"
)

// Bounds of a mail server's settings.
const (
	maxAddress  = 254 // RFC 5321 4.5.3.1.3, without the angle brackets
	maxUsername = 256
)

// MailEndpoint is a mail server and how to send through it. It holds a password:
// it is made for one attempt and printed nowhere.
type MailEndpoint struct {
	Host string
	Port int
	TLS  TLSMode
	// Username and Password log in, by AUTH PLAIN or LOGIN; both empty: no login.
	Username, Password string
	// From is the sender.
	From string
	// HelloName is what we call ourselves.
	HelloName string
}

// ErrMailEndpoint is all that is said about one that is none: the text holds a
// password.
var ErrMailEndpoint = errors.New("a mail server is smtp:// or smtps://user:password@host:port?from=address&hello=name; " +
	"without a user there is no login, without from the user is the sender, special characters of a URL are percent-encoded")

// ParseMailEndpoint reads what a Secret holds.
func ParseMailEndpoint(secret string) (MailEndpoint, error) {
	u, err := url.Parse(secret)
	if err != nil || u.Fragment != "" || u.Opaque != "" || u.Path != "" && u.Path != "/" {
		return MailEndpoint{}, ErrMailEndpoint
	}
	m := MailEndpoint{Host: u.Hostname(), HelloName: "localhost"}
	switch u.Scheme {
	case "smtp":
		m.TLS, m.Port = StartTLS, 587
	case "smtps":
		m.TLS, m.Port = ImplicitTLS, 465
	default:
		return MailEndpoint{}, ErrMailEndpoint
	}
	if port := u.Port(); port != "" {
		m.Port, err = strconv.Atoi(port)
	}
	if err != nil || len(validation.IsValidPortNum(m.Port)) > 0 || !hostOK(m.Host) {
		return MailEndpoint{}, ErrMailEndpoint
	}
	if !m.login(u.User) || !m.settings(u.RawQuery) {
		return MailEndpoint{}, ErrMailEndpoint
	}
	return m, nil
}

// login takes a user with a password, or neither.
func (m *MailEndpoint) login(user *url.Userinfo) bool {
	if user == nil {
		return true
	}
	m.Username = user.Username()
	m.Password, _ = user.Password()
	return m.Username != "" && m.Password != "" && len(m.Username) <= maxUsername && !strings.ContainsFunc(m.Username+m.Password, unicode.IsControl)
}

// settings takes from and hello, each once, and nothing that it does not know.
func (m *MailEndpoint) settings(query string) bool {
	values, err := url.ParseQuery(query)
	if err != nil {
		return false
	}
	m.From = m.Username
	for name, list := range values {
		switch {
		case len(list) != 1:
			return false
		case name == "from":
			m.From = list[0]
		case name == "hello":
			m.HelloName = list[0]
		default:
			return false
		}
	}
	return addressOK(m.From) && hostOK(m.HelloName)
}

func hostOK(s string) bool {
	if _, err := netip.ParseAddr(s); err == nil {
		return true
	}
	return len(validation.IsDNS1123Subdomain(strings.ToLower(s))) == 0
}

// addressOK is an address that a server without SMTPUTF8 takes, with or without
// a name before it, and that ends in a domain, which the Message-ID needs.
func addressOK(s string) bool {
	parsed, err := mail.ParseAddress(s)
	if err != nil || len(parsed.Address) > maxAddress || strings.ContainsFunc(s, unicode.IsControl) {
		return false
	}
	at := strings.LastIndexByte(parsed.Address, '@')
	outside := func(r rune) bool { return r <= ' ' || r >= unicode.MaxASCII || strings.ContainsRune(`<>"`, r) }
	return !strings.ContainsFunc(parsed.Address, outside) && hostOK(parsed.Address[at+1:])
}
