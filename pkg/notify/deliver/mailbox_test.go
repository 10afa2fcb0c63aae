// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"

	"github.com/plumbline-dev/plumbline/pkg/notify"
)

const password = "pass-" + canary

// mailbox is a real mail server in this process.
type mailbox struct {
	*smtp.Server
	port  int
	roots *x509.CertPool

	mechanisms []string
	// refuse answers a step ("mail", "rcpt <address>", "data"), at its n-th time.
	refuse func(step string, n int) error

	mu    sync.Mutex
	steps map[string]int
	plain []string // logins and steps that were not encrypted
	got   []message
}

type message struct {
	From string
	To   []string
	Body string
}

// serveMail starts a mail server; change sets it up before it listens.
func serveMail(t *testing.T, implicit bool, change func(*mailbox)) *mailbox {
	t.Helper()
	certificate := httptest.NewTLSServer(nil) // only for its certificate
	certificate.Close()
	b := &mailbox{roots: trusting(certificate.Certificate()), mechanisms: []string{sasl.Plain}, steps: map[string]int{}}
	b.Server = smtp.NewServer(b)
	b.Domain, b.ErrorLog = "localhost", log.New(io.Discard, "", 0)
	b.TLSConfig = &tls.Config{Certificates: certificate.TLS.Certificates}
	b.ReadTimeout, b.WriteTimeout = patience, patience
	if change != nil {
		change(b)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.port = listener.Addr().(*net.TCPAddr).Port
	if implicit {
		listener = tls.NewListener(listener, b.TLSConfig)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = b.Serve(listener) // ends when it is closed
	}()
	t.Cleanup(func() {
		_ = b.Close()
		<-served
	})
	return b
}

// NewSession implements smtp.Backend.
func (b *mailbox) NewSession(c *smtp.Conn) (smtp.Session, error) {
	return &mailSession{mailbox: b, conn: c}, nil
}

func (b *mailbox) messages() []message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.got)
}

type mailSession struct {
	*mailbox
	conn    *smtp.Conn
	message message
}

func (s *mailSession) step(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps[name]++
	if _, encrypted := s.conn.TLSConnectionState(); !encrypted {
		s.plain = append(s.plain, name)
	}
	if s.refuse == nil {
		return nil
	}
	return s.refuse(name, s.steps[name])
}

func (s *mailSession) AuthMechanisms() []string { return s.mechanisms }

func (s *mailSession) Auth(mechanism string) (sasl.Server, error) {
	check := func(user, pass string) error {
		if err := s.step("auth " + mechanism); err != nil {
			return err
		}
		if user != "plumbline" || pass != password {
			return &smtp.SMTPError{Code: 535, Message: "wrong: " + user + " " + pass}
		}
		return nil
	}
	if mechanism == "LOGIN" {
		return &loginServer{check: check}, nil
	}
	return sasl.NewPlainServer(func(_, user, pass string) error { return check(user, pass) }), nil
}

// loginServer asks as the draft does.
type loginServer struct {
	check   func(user, pass string) error
	answers []string
}

func (l *loginServer) Next(answer []byte) (challenge []byte, done bool, err error) {
	if answer != nil {
		l.answers = append(l.answers, string(answer))
	}
	switch len(l.answers) {
	case 0:
		return []byte("Username:"), false, nil
	case 1:
		return []byte("Password:"), false, nil
	default:
		return nil, true, l.check(l.answers[0], l.answers[1])
	}
}

func (s *mailSession) Mail(from string, _ *smtp.MailOptions) error {
	s.message.From = from
	return s.step("mail")
}

func (s *mailSession) Rcpt(to string, _ *smtp.RcptOptions) error {
	if err := s.step("rcpt " + to); err != nil {
		return err
	}
	s.message.To = append(s.message.To, to)
	return nil
}

func (s *mailSession) Data(r io.Reader) error {
	body, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	if err := s.step("data"); err != nil {
		return err
	}
	s.message.Body = string(body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.got = append(s.got, s.message)
	return nil
}

func (s *mailSession) Reset() { s.message = message{} }

func (s *mailSession) Logout() error { return nil }

// endpoint is the server as a Secret holds it.
func (b *mailbox) endpoint(mode notify.TLSMode) string {
	scheme := map[notify.TLSMode]string{notify.StartTLS: "smtp", notify.ImplicitTLS: "smtps"}[mode]
	return fmt.Sprintf("%s://plumbline:%s@127.0.0.1:%d?from=Plumbline+<plumbline@example.com>", scheme, password, b.port)
}

// channel that sends through the server that the Secret says.
func mailChannel(to ...string) notify.Channel {
	return notify.Channel{Name: "mail", Email: &notify.EmailChannel{Endpoint: ref("endpoint"), To: to}}
}

func (b *mailbox) options(endpoint string) Options {
	return Options{Secrets: vault{"endpoint": endpoint}.resolve, Egress: loopback, Roots: b.roots, Retry: quick}
}
