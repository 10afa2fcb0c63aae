// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-smtp"
	"github.com/google/go-cmp/cmp"

	"github.com/plumbline-dev/plumbline/pkg/notify"
	"github.com/plumbline-dev/plumbline/test/harness/freeport"
)

func TestEmail_EveryWayToLogIn(t *testing.T) {
	cases := map[string]struct {
		mode       notify.TLSMode
		mechanisms []string
		change     func(endpoint string) string
		step       string
	}{
		"STARTTLS, PLAIN":           {notify.StartTLS, []string{"PLAIN"}, nil, "auth PLAIN"},
		"STARTTLS, LOGIN":           {notify.StartTLS, []string{"LOGIN"}, nil, "auth LOGIN"},
		"TLS from the start, PLAIN": {notify.ImplicitTLS, []string{"LOGIN", "PLAIN"}, nil, "auth PLAIN"},
		"TLS from the start, LOGIN": {notify.ImplicitTLS, []string{"XOAUTH2", "LOGIN"}, nil, "auth LOGIN"},
		"without a login": {notify.StartTLS, nil, func(endpoint string) string {
			return strings.Replace(endpoint, "plumbline:"+password+"@", "", 1) + "&hello=plumbline.example.com"
		}, "mail"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := serveMail(t, tc.mode == notify.ImplicitTLS, func(b *mailbox) { b.mechanisms = tc.mechanisms })
			endpoint := b.endpoint(tc.mode)
			if tc.change != nil {
				endpoint = tc.change(endpoint)
			}
			if failure := once(t, New(b.options(endpoint)), mailChannel("ops@example.com", "Jörg <joerg@example.com>")); failure != nil {
				t.Fatal(failure)
			}
			got := b.messages()
			if len(got) != 1 || b.steps[tc.step] != 1 {
				t.Fatalf("messages %v, steps %v", got, b.steps)
			}
			if diff := cmp.Diff([]string{"ops@example.com", "joerg@example.com"}, got[0].To); diff != "" || got[0].From != "plumbline@example.com" {
				t.Errorf("from %s, to (-want +got):\n%s", got[0].From, diff)
			}
			parsed, err := mail.ReadMessage(strings.NewReader(got[0].Body))
			if err != nil || !strings.Contains(parsed.Header.Get("Subject"), "plan-1 failed") {
				t.Errorf("%v in:\n%s", err, got[0].Body)
			}
			if len(b.plain) > 0 {
				t.Errorf("not encrypted: %v", b.plain)
			}
		})
	}
}

// answer of a mail server; it says more than it should.
func answer(code int) error {
	return &smtp.SMTPError{Code: code, Message: "no " + password}
}

func TestEmail_Faults(t *testing.T) {
	refuse := func(step string, times int, err error) func(string, int) error {
		return func(got string, n int) error {
			if got == step && n <= times {
				return err
			}
			return nil
		}
	}
	const ever = 1 << 30
	a, b := "a@example.com", "b@example.com"
	cases := map[string]struct {
		refuse func(string, int) error
		want   Outcome
		to     [][]string // of each message
		log    string
	}{
		"450 to the sender, then not":    {refuse("mail", 1, answer(450)), Sent, [][]string{{a, b}}, "not able to take it now (450)"},
		"550 to the sender":              {refuse("mail", ever, answer(550)), Failed, nil, "refused it (550)"},
		"a login that may work later":    {refuse("auth PLAIN", 1, answer(454)), Sent, [][]string{{a, b}}, "logging in: the receiver is not able to take it now (454)"},
		"a login that will not work":     {refuse("auth PLAIN", ever, answer(535)), Failed, nil, "logging in: the receiver refused it (535)"},
		"one recipient is unknown":       {refuse("rcpt "+a, ever, answer(550)), Sent, [][]string{{b}}, ""},
		"all recipients are unknown":     {func(step string, _ int) error { return errIf(strings.HasPrefix(step, "rcpt"), answer(550)) }, Failed, nil, "takes no recipient"},
		"one recipient is taken later":   {refuse("rcpt "+a, 2, answer(451)), Sent, [][]string{{b}, {a}}, "naming the recipients: the receiver is not able to take it now (451)"},
		"both recipients are taken late": {func(step string, n int) error { return errIf(strings.HasPrefix(step, "rcpt") && n == 1, answer(451)) }, Sent, [][]string{{a, b}}, ""},
		"one unknown, one taken later":   {func(step string, n int) error { return greylist(step, n, a, b) }, Sent, [][]string{{b}}, ""},
		"452 to the message, then not":   {refuse("data", 1, answer(452)), Sent, [][]string{{a, b}}, "sending the message"},
		"554 to the message":             {refuse("data", ever, answer(554)), Failed, nil, "sending the message: the receiver refused it (554)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := serveMail(t, false, func(s *mailbox) { s.refuse = tc.refuse })
			var c counted
			var log logged
			o := server.options(server.endpoint(notify.StartTLS))
			o.Recorder, o.Log = &c, log.logger()
			n := start(t, o, mailChannel(a, b))
			if diff := cmp.Diff(map[Outcome]int{tc.want: 1}, tell(t, n, &c, plan("1", notify.PlanFailed), "mail")); diff != "" {
				t.Errorf("outcomes (-want +got):\n%s\n%s", diff, log.String())
			}
			var to [][]string
			for _, m := range server.messages() {
				to = append(to, m.To)
			}
			if diff := cmp.Diff(tc.to, to); diff != "" {
				t.Errorf("recipients (-want +got):\n%s", diff)
			}
			if !strings.Contains(log.String(), tc.log) {
				t.Errorf("log without %q:\n%s", tc.log, log.String())
			}
			checkNoSecret(t, log.String())
		})
	}
}

func errIf(condition bool, err error) error {
	if condition {
		return err
	}
	return nil
}

// greylist refuses the first recipient for good and the second once.
func greylist(step string, n int, first, second string) error {
	if step == "rcpt "+first {
		return answer(550)
	}
	return errIf(step == "rcpt "+second && n == 1, answer(451))
}

// TestEmail_NothingWithoutTLS: a server that cannot, or somebody between who
// hides that it can, learns neither the password nor the message.
func TestEmail_NothingWithoutTLS(t *testing.T) {
	open := serveMail(t, false, func(b *mailbox) { b.TLSConfig, b.AllowInsecureAuth = nil, true })
	other := serveMail(t, false, nil)
	other.roots = x509.NewCertPool()
	odd := serveMail(t, false, func(b *mailbox) { b.mechanisms = []string{"XOAUTH2"} })
	private := serveMail(t, false, nil)
	replace := func(old, replacement string) func(*Options, string) {
		return func(o *Options, endpoint string) {
			o.Secrets = vault{"endpoint": strings.Replace(endpoint, old, replacement, 1)}.resolve
		}
	}
	cases := map[string]struct {
		server *mailbox
		change func(*Options, string)
		want   Failure
	}{
		"no STARTTLS":                       {open, replace("", ""), Failure{Step: "starting TLS", Cause: CauseNoTLS}},
		"TLS from the start, where none is": {open, replace("smtp", "smtps"), Failure{Step: "greeting", Cause: CauseBroken, Retry: true}},
		"a certificate of nobody":           {other, replace("", ""), Failure{Step: "starting TLS", Cause: CauseCertificate, Retry: true}},
		"a certificate for another name":    {private, replace("127.0.0.1", "localhost"), Failure{Step: "starting TLS", Cause: CauseCertificate, Retry: true}},
		"no login that we know":             {odd, replace("", ""), Failure{Step: "logging in", Cause: CauseNoAuth}},
		"loopback that is not allowed": {private, func(o *Options, endpoint string) {
			o.Egress, o.Secrets = Egress{}, vault{"endpoint": endpoint}.resolve
		}, Failure{Step: "connecting", Cause: CauseAddressRefused}},
		"nobody listens": {private, replace(fmt.Sprintf("127.0.0.1:%d", private.port), freeport.Address(t)), Failure{Step: "connecting", Cause: CauseConnection, Retry: true}},
		"no server": {private, func(o *Options, _ string) {
			o.Secrets = vault{}.resolve
		}, Failure{Step: `reading key "endpoint" of Secret "notifications"`, Cause: CauseSecret, Retry: true}},
		"a server that is none": {private, replace("smtp", "http"), Failure{Step: "reading the mail server", Cause: CauseSecretMalformed}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := tc.server.options("")
			tc.change(&o, tc.server.endpoint(notify.StartTLS))
			failure := once(t, New(o), mailChannel("ops@example.com"))
			if failure == nil {
				t.Fatal("it was sent")
			}
			if diff := cmp.Diff(tc.want, *failure); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			checkNoSecret(t, failure.String())
		})
	}
	for _, server := range []*mailbox{open, other, odd, private} {
		if len(server.steps) > 0 {
			t.Errorf("steps beyond the greeting: %v", server.steps)
		}
	}
}

// TestEmail_ServersThatAreNone: each is a listener that does one thing to every
// connection.
func TestEmail_ServersThatAreNone(t *testing.T) {
	cases := map[string]struct {
		behave func(net.Conn, <-chan struct{})
		want   Cause
	}{
		"a line without end":     {func(c net.Conn, _ <-chan struct{}) { flood(c, "220-"+canary) }, CauseBroken},
		"lines without end":      {func(c net.Conn, _ <-chan struct{}) { flood(c, "220-"+canary+"\r\n") }, CauseBroken},
		"silence":                {func(_ net.Conn, over <-chan struct{}) { <-over }, CauseTimeout},
		"hanging up":             {func(net.Conn, <-chan struct{}) {}, CauseBroken},
		"another protocol":       {func(c net.Conn, _ <-chan struct{}) { _, _ = io.WriteString(c, "HTTP/1.1 400 "+canary+"\r\n\r\n") }, CauseBroken},
		"refusing at the door":   {func(c net.Conn, _ <-chan struct{}) { _, _ = io.WriteString(c, "554 "+canary+"\r\n") }, CauseRefused},
		"too busy at the door":   {func(c net.Conn, _ <-chan struct{}) { _, _ = io.WriteString(c, "421 "+canary+"\r\n") }, CauseUnavailable},
		"silence after greeting": {func(c net.Conn, over <-chan struct{}) { _, _ = io.WriteString(c, "220 hello\r\n"); <-over }, CauseTimeout},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			port := listen(t, tc.behave)
			endpoint := (&mailbox{port: port}).endpoint(notify.StartTLS)
			n := New(Options{Secrets: vault{"endpoint": endpoint}.resolve, Egress: loopback})
			n.retry.AttemptTimeout = 300 * time.Millisecond
			if tc.want != CauseTimeout {
				n.retry.AttemptTimeout = patience
			}
			c := newChannel(n, mailChannel("ops@example.com"))
			defer c.stop()
			failure := c.attempt(t.Context(), &job{event: plan("1", notify.PlanFailed), progress: progress{settled: map[string]bool{}}})
			if failure == nil || failure.Cause != tc.want {
				t.Errorf("got %v, want %s", failure, tc.want)
			}
			if failure != nil {
				checkNoSecret(t, failure.String())
			}
		})
	}
}

// flood writes until nobody listens.
func flood(c net.Conn, text string) {
	block := []byte(strings.Repeat(text, 1000))
	for range 100_000 {
		if _, err := c.Write(block); err != nil {
			return
		}
	}
	panic("somebody read it all")
}

// listen on a port until the test is over.
func listen(t *testing.T, behave func(net.Conn, <-chan struct{})) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			served.Go(func() {
				behave(conn, over)
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() {
		close(over)
		_ = listener.Close()
		served.Wait()
	})
	return listener.Addr().(*net.TCPAddr).Port
}
