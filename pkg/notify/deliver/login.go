// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"errors"
	"net/smtp"
	"slices"
	"strings"

	"github.com/plumbline-dev/plumbline/pkg/notify"
)

var (
	errNotEncrypted = errors.New("the connection is not encrypted")
	errChallenge    = errors.New("an unexpected challenge")
)

// login uses PLAIN where it is offered, else LOGIN, and nothing without TLS.
func login(client *smtp.Client, server notify.MailEndpoint) *Failure {
	_, offered := client.Extension("AUTH")
	mechanisms := strings.Fields(strings.ToUpper(offered))
	var auth smtp.Auth
	switch {
	case slices.Contains(mechanisms, "PLAIN"):
		auth = &encrypted{smtp.PlainAuth("", server.Username, server.Password, server.Host)}
	case slices.Contains(mechanisms, "LOGIN"):
		auth = &encrypted{&loginAuth{username: server.Username, password: server.Password}}
	default:
		return &Failure{Step: "logging in", Cause: CauseNoAuth}
	}
	err := client.Auth(auth)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errNotEncrypted):
		return &Failure{Step: "logging in", Cause: CauseNoTLS}
	case errors.Is(err, errChallenge):
		return &Failure{Step: "logging in", Cause: CauseNoAuth}
	default:
		return mailFailure("logging in", err)
	}
}

// encrypted refuses to say a word without TLS. net/smtp's PLAIN makes an exception
// for localhost, which is somebody else's in a pod with several containers.
type encrypted struct{ smtp.Auth }

func (a *encrypted) Start(server *smtp.ServerInfo) (string, []byte, error) {
	if !server.TLS {
		return "", nil, errNotEncrypted
	}
	return a.Auth.Start(server)
}

// loginAuth is the mechanism LOGIN (draft-murchison-sasl-login-00): the server
// asks for the user, then for the password.
type loginAuth struct {
	username, password string
	answered           int
}

func (a *loginAuth) Start(*smtp.ServerInfo) (mechanism string, first []byte, err error) {
	return "LOGIN", nil, nil
}

// Next goes by the order, as the draft does, and not by the words of the
// challenge, which servers write as they like.
func (a *loginAuth) Next(_ []byte, more bool) ([]byte, error) {
	if !more {
		return nil, nil
	}
	a.answered++
	switch a.answered {
	case 1:
		return []byte(a.username), nil
	case 2:
		return []byte(a.password), nil
	default:
		return nil, errChallenge
	}
}
