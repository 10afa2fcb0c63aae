// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"crypto/tls"
	"net"
	netmail "net/mail"
	"net/smtp"
	"strconv"
	"time"

	"github.com/plumbline-dev/plumbline/pkg/notify"
)

// progress is what several attempts at one email share: a server may take some
// recipients now, some later and some never.
type progress struct {
	settled map[string]bool // taken or refused for good: not asked again
	taken   int
}

// sendEmail hands the message over for all recipients that are not settled yet.
func (n *Notifier) sendEmail(ctx context.Context, c *notify.EmailChannel, e notify.Event, p *progress) *Failure {
	secret, failure := n.secret(ctx, c.Endpoint)
	if failure != nil {
		return failure
	}
	server, err := notify.ParseMailEndpoint(secret)
	if err != nil {
		return &Failure{Step: "reading the mail server", Cause: CauseSecretMalformed}
	}
	message, err := notify.EmailMessage(e, server.From, c.To)
	if err != nil {
		return &Failure{Step: "rendering", Cause: CauseMessage}
	}
	conn, err := n.egress.dial(ctx, "tcp", net.JoinHostPort(server.Host, strconv.Itoa(server.Port)))
	if err != nil {
		return networkFailure("connecting", err)
	}
	// net/smtp knows no context: when it ends, so do reads and writes.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	client, failure := n.connectMail(conn, server)
	if failure != nil {
		return failure
	}
	defer func() { _ = client.Close() }() // after the hand-over there is nothing to lose
	if server.Username != "" {
		if failure := login(client, server); failure != nil {
			return failure
		}
	}
	if failure := handOver(client, server.From, c.To, message, p); failure != nil {
		return failure
	}
	_ = client.Quit() // the message is taken whether the server says goodbye or not
	return nil
}

// connectMail says hello over the connection and has TLS, or closes it and fails.
func (n *Notifier) connectMail(conn net.Conn, server notify.MailEndpoint) (*smtp.Client, *Failure) {
	trust := n.trust.Clone()
	trust.ServerName = server.Host
	if server.TLS == notify.ImplicitTLS {
		conn = tls.Client(conn, trust)
	}
	client, err := smtp.NewClient(conn, server.Host)
	if err != nil {
		_ = conn.Close() // the first error is the one that tells
		return nil, mailFailure("greeting", err)
	}
	if failure := greet(client, server, trust); failure != nil {
		_ = client.Close() // as above
		return nil, failure
	}
	return client, nil
}

// greet says hello, and begins TLS unless it is there. A server that does not
// offer it, or somebody between who hides the offer, gets nothing.
func greet(client *smtp.Client, server notify.MailEndpoint, trust *tls.Config) *Failure {
	if err := client.Hello(server.HelloName); err != nil {
		return mailFailure("greeting", err)
	}
	if server.TLS == notify.ImplicitTLS {
		return nil
	}
	if offered, _ := client.Extension("STARTTLS"); !offered {
		return &Failure{Step: "starting TLS", Cause: CauseNoTLS}
	}
	if err := client.StartTLS(trust); err != nil {
		return mailFailure("starting TLS", err)
	}
	return nil
}

// handOver sends the message to the recipients that the server takes.
func handOver(client *smtp.Client, from string, to []string, message []byte, p *progress) *Failure {
	sender, err := netmail.ParseAddress(from)
	if err != nil {
		return &Failure{Step: "naming the sender", Cause: CauseMessage}
	}
	if err := client.Mail(sender.Address); err != nil {
		return mailFailure("naming the sender", err)
	}
	accepted, later, failure := offer(client, to, p)
	if failure != nil {
		return failure
	}
	if len(accepted) > 0 {
		if failure := writeMessage(client, message); failure != nil {
			return failure
		}
		for _, recipient := range accepted {
			p.settled[recipient] = true
		}
		p.taken += len(accepted)
	}
	switch {
	case later != nil:
		return later
	case p.taken == 0:
		return &Failure{Step: "naming the recipients", Cause: CauseRecipients}
	default:
		return nil
	}
}

// offer names the recipients that are not settled. It settles those that are
// refused for good; later is the answer about one that may be taken later.
func offer(client *smtp.Client, to []string, p *progress) (accepted []string, later, failure *Failure) {
	for _, recipient := range to {
		if p.settled[recipient] {
			continue
		}
		parsed, err := netmail.ParseAddress(recipient)
		if err != nil {
			p.settled[recipient] = true
			continue
		}
		err = client.Rcpt(parsed.Address)
		if err == nil {
			accepted = append(accepted, recipient)
			continue
		}
		answer := mailFailure("naming the recipients", err)
		switch {
		case answer.Status == 0: // the connection is gone
			return nil, nil, answer
		case answer.Retry:
			later = answer
		default:
			p.settled[recipient] = true
		}
	}
	return accepted, later, nil
}

func writeMessage(client *smtp.Client, message []byte) *Failure {
	w, err := client.Data()
	if err != nil {
		return mailFailure("sending the message", err)
	}
	if _, err := w.Write(message); err != nil {
		return mailFailure("sending the message", err)
	}
	if err := w.Close(); err != nil {
		return mailFailure("sending the message", err)
	}
	return nil
}
