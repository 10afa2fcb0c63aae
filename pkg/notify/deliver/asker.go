// SPDX-License-Identifier: Apache-2.0

package deliver

import (
	"context"
	"crypto/x509"
	"io"
	"net/http"

	"github.com/plumbline-dev/plumbline/pkg/notify"
)

// Asker makes signed requests whose answers say something. It posts by the rules of a [Notifier]: the
// same signature, the same [Egress], no redirects, no proxy. It is safe for concurrent use.
type Asker struct{ poster }

// NewAsker returns an asker. Roots are the certificate authorities that are trusted; nil: the system's.
func NewAsker(secrets Secrets, egress Egress, roots *x509.CertPool) *Asker {
	return &Asker{poster{secrets: secrets, egress: egress, client: newClient(egress, trustOf(roots))}}
}

// Reply is the answer of a receiver, with any status.
type Reply struct {
	Status int
	Body   []byte
}

// Ask makes one attempt to post a body of JSON to the URL that a Secret holds, signed with the key that
// another one holds. The id is that of the signature. Of the answer it reads at most one byte more than
// most, so that the caller sees that there is more. The context bounds the attempt.
func (a *Asker) Ask(ctx context.Context, url, key notify.SecretRef, id string, body []byte, most int) (Reply, *Failure) {
	header, failure := a.sign(ctx, key, id, body)
	if failure != nil {
		return Reply{}, failure
	}
	response, failure := a.exchange(ctx, url, body, header)
	if failure != nil {
		return Reply{}, failure
	}
	defer func() { _ = response.Body.Close() }() // all that is wanted was read
	return readReply(response, most)
}

// Request is one whose address is no secret.
type Request struct {
	Method, URL string
	// Key signs the request; ID is that of the signature.
	Key notify.SecretRef
	ID  string
	// Body is JSON; nil for none.
	Body []byte
}

// Send makes one attempt, by the rules of [Asker.Ask].
func (a *Asker) Send(ctx context.Context, r Request, most int) (Reply, *Failure) {
	header, failure := a.sign(ctx, r.Key, r.ID, r.Body)
	if failure != nil {
		return Reply{}, failure
	}
	response, failure := a.do(ctx, r.Method, r.URL, r.Body, header)
	if failure != nil {
		return Reply{}, failure
	}
	defer func() { _ = response.Body.Close() }() // all that is wanted was read
	return readReply(response, most)
}

// readReply reads at most one byte more than most.
func readReply(response *http.Response, most int) (Reply, *Failure) {
	answer, err := io.ReadAll(io.LimitReader(response.Body, int64(most)+1))
	if err != nil {
		return Reply{}, networkFailure("reading the answer", err)
	}
	return Reply{Status: response.StatusCode, Body: answer}, nil
}
