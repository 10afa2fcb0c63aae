// SPDX-License-Identifier: Apache-2.0

package login

import (
	"context"
	"crypto/sha256"
	"net/http"
	"time"

	"github.com/plumbline-dev/plumbline/internal/serve/callers"
	"github.com/plumbline-dev/plumbline/internal/serve/oidc"
)

const (
	// nearEnd is how long before the end of a token the next one is asked for.
	nearEnd = time.Minute
	// refreshes bounds the answers that are remembered.
	refreshes = 10_000
	// refreshedFor is how long tokens are remembered: a page sends several requests with the cookies of before, and issuers take a
	// refresh token once. failedFor spares an issuer that does not answer.
	refreshedFor = time.Minute
	failedFor    = 10 * time.Second
)

// outcome is the answer of the issuer; without tokens it gave none.
type outcome struct{ tokens *oidc.Tokens }

// refresh gives a session its next token near the end of its token, and returns the caller. It returns nil
// where the session goes on with the token that it has.
func (l *Login) refresh(ctx context.Context, w http.ResponseWriter, h *held, now time.Time) *callers.Caller {
	if l.Provider == nil || h.Refresh == "" || time.Unix(h.TokenEnd, 0).Sub(now) > nearEnd {
		return nil
	}
	digest := sha256.Sum256([]byte(h.Refresh))
	got, err := l.refreshed.Get(ctx, string(digest[:]), func(ctx context.Context) (outcome, time.Duration, error) {
		tokens, err := l.Provider.Refresh(ctx, h.Refresh, h.Subject)
		if err != nil {
			l.Log.Warn("api.refresh.failed", "error", err.Error())
			return outcome{}, failedFor, nil // the session goes on until its token ends
		}
		return outcome{tokens}, refreshedFor, nil
	})
	if err != nil || got.tokens == nil {
		return nil
	}
	caller, err := l.Callers.Identify(ctx, got.tokens.ID)
	if err != nil {
		l.Log.Warn("api.refresh.failed", "error", err.Error())
		return nil
	}
	next := held{Token: got.tokens.ID, Refresh: got.tokens.Refresh, Subject: h.Subject, TokenEnd: got.tokens.End.Unix(), End: h.End}
	if err := l.keep(w, &next); err != nil {
		l.Log.Warn("api.refresh.failed", "error", err.Error())
		return nil
	}
	return caller
}
