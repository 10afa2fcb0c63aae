// SPDX-License-Identifier: Apache-2.0

package notify_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/plumbline-dev/plumbline/pkg/notify"
)

func TestParseMailEndpoint(t *testing.T) {
	cases := map[string]struct {
		secret string
		want   notify.MailEndpoint
	}{
		"STARTTLS, the usual port": {"smtp://ops%40example.com:p%40ss@mail.example.com", notify.MailEndpoint{
			Host: "mail.example.com", Port: 587, TLS: notify.StartTLS, Username: "ops@example.com", Password: "p@ss", From: "ops@example.com", HelloName: "localhost",
		}},
		"TLS from the start, the usual port": {"smtps://mail.example.com/?from=a@example.com", notify.MailEndpoint{
			Host: "mail.example.com", Port: 465, TLS: notify.ImplicitTLS, From: "a@example.com", HelloName: "localhost",
		}},
		"everything said": {"smtps://ops:secret@[2001:db8::1]:2465?from=Plumbline+%3Ca@example.com%3E&hello=plumbline.example.com", notify.MailEndpoint{
			Host: "2001:db8::1", Port: 2465, TLS: notify.ImplicitTLS, Username: "ops", Password: "secret",
			From: "Plumbline <a@example.com>", HelloName: "plumbline.example.com",
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := notify.ParseMailEndpoint(tc.secret)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseMailEndpoint_Refuses(t *testing.T) {
	for name, secret := range map[string]string{
		"nothing":                         "",
		"a name alone":                    "mail.example.com:587",
		"another scheme":                  "http://mail.example.com?from=a@example.com",
		"no host":                         "smtp://?from=a@example.com",
		"a host with an underscore":       "smtp://mail_1.example.com?from=a@example.com",
		"port 0":                          "smtp://mail.example.com:0?from=a@example.com",
		"a port beyond 65535":             "smtp://mail.example.com:65536?from=a@example.com",
		"a port that is a word":           "smtp://mail.example.com:smtp?from=a@example.com",
		"a path":                          "smtp://mail.example.com/x?from=a@example.com",
		"a fragment":                      "smtp://mail.example.com?from=a@example.com#x",
		"no sender":                       "smtp://mail.example.com",
		"a user that is no address alone": "smtp://ops:secret@mail.example.com",
		"a user without a password":       "smtp://ops@mail.example.com?from=a@example.com",
		"a password without a user":       "smtp://:secret@mail.example.com?from=a@example.com",
		"a user with a second line":       "smtp://a%0D%0Ab:secret@mail.example.com?from=a@example.com",
		"a password with a zero byte":     "smtp://ops:a%00b@mail.example.com?from=a@example.com",
		"a user that is too long":         "smtp://" + strings.Repeat("a", 257) + ":secret@mail.example.com?from=a@example.com",
		"a sender with a second line":     "smtp://mail.example.com?from=a@example.com%0D%0ABcc:b@example.com",
		"a sender without a domain":       "smtp://mail.example.com?from=root",
		"two senders":                     "smtp://mail.example.com?from=a@example.com&from=b@example.com",
		"a hello with a second command":   "smtp://mail.example.com?from=a@example.com&hello=a%0D%0AMAIL",
		"a setting that is not known":     "smtp://mail.example.com?from=a@example.com&tls=off",
		"a query that cannot be read":     "smtp://mail.example.com?from=a@example.com;b",
		"an escape that is none":          "smtp://ops:%zz@mail.example.com",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := notify.ParseMailEndpoint(secret)
			if !errors.Is(err, notify.ErrMailEndpoint) || got != (notify.MailEndpoint{}) {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
}

// TestParseMailEndpoint_AnyPassword survives the way through a URL.
func TestParseMailEndpoint_AnyPassword(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		password := rapid.StringMatching(`[ -~äöü€]{1,40}`).Draw(t, "password")
		u := url.URL{Scheme: "smtp", Host: "mail.example.com", User: url.UserPassword("ops@example.com", password)}
		got, err := notify.ParseMailEndpoint(u.String())
		if err != nil || got.Password != password || got.Username != "ops@example.com" {
			t.Fatalf("got %v, %v", got, err)
		}
	})
}

// FuzzParseMailEndpoint: what is taken can be used, and what is not is not
// repeated.
func FuzzParseMailEndpoint(f *testing.F) {
	f.Add("smtp://ops%40example.com:p%40ss@mail.example.com:587")
	f.Add("smtps://[::1]?from=a@example.com&hello=h")
	f.Add("smtp://\x00")
	f.Fuzz(func(t *testing.T, secret string) {
		m, err := notify.ParseMailEndpoint(secret)
		if err != nil {
			if len(secret) > 60 && strings.Contains(err.Error(), secret) {
				t.Fatalf("the error repeats the secret: %v", err)
			}
			return
		}
		if m.Port < 1 || m.Port > 65535 || m.Host == "" || (m.Username == "") != (m.Password == "") || strings.ContainsAny(m.Host+m.From+m.HelloName+m.Username+m.Password, "\r\n\x00") {
			t.Fatalf("%q: %+v", secret, m)
		}
		if _, err := notify.EmailMessage(sample(notify.PlanFailed), m.From, recipients); err != nil {
			t.Fatalf("%q: %v", secret, err)
		}
	})
}
