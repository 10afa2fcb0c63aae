// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/serve/answers"
)

// Audience is that of tokens that can read and cannot write.
const Audience = "plumbline-api"

const (
	// knownFor and refusedFor are how long an answer is remembered, and entries how many answers are.
	knownFor   = time.Minute
	refusedFor = 5 * time.Second
	entries    = 10_000
	anonymous  = "system:anonymous"
)

// ErrRefused says that the API server takes a token for no user.
var ErrRefused = errors.New("the API server does not know the caller")

// Reviewer asks the API server whose a token is. An empty audience is that of the API server itself. Its errors
// hold no part of the token.
type Reviewer interface {
	Review(ctx context.Context, token, audience string) (authenticationv1.TokenReviewStatus, error)
}

// Callers knows whose tokens are.
type Callers struct {
	reviewer Reviewer
	clock    clock.PassiveClock
	known    *answers.Memory[identity]
}

// identity is the answer about a token; without a name it is a refusal.
type identity struct {
	user     authenticationv1.UserInfo
	mayWrite bool
}

// New makes Callers without any answer yet.
func New(reviewer Reviewer, passive clock.PassiveClock, counts answers.Counts) *Callers {
	return &Callers{reviewer: reviewer, clock: passive, known: answers.New[identity](passive, entries, counts)}
}

// Identify returns whose a token is. The error is [ErrRefused], or says why the API server could not be asked.
func (c *Callers) Identify(ctx context.Context, token string) (*Caller, error) {
	digest := sha256.Sum256([]byte(token))
	found, err := c.known.Get(ctx, string(digest[:]), func(ctx context.Context) (identity, time.Duration, error) {
		who, err := c.review(ctx, token)
		return who, c.lasts(token, &who), err
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("reviewing a token: %w", err)
	case found.user.Username == "":
		return nil, ErrRefused
	}
	until, _ := EndOf(token)
	return &Caller{
		User: *found.user.DeepCopy(), MayWrite: found.mayWrite, Until: until, token: func() string { return token },
		renew: func(ctx context.Context) (*Caller, error) { return c.Identify(ctx, token) },
	}, nil
}

// review asks for the audience of the API server, and then for [Audience].
func (c *Callers) review(ctx context.Context, token string) (identity, error) {
	status, err := c.reviewer.Review(ctx, token, "")
	if err != nil {
		return identity{}, err
	}
	if status.Authenticated {
		return identity{userOf(&status), true}, nil
	}
	status, err = c.reviewer.Review(ctx, token, Audience)
	// An authenticator that knows no audiences names none.
	if err != nil || !status.Authenticated || !slices.Contains(status.Audiences, Audience) {
		return identity{}, err
	}
	return identity{userOf(&status), false}, nil
}

// userOf returns the user of a review; none for one without a name of their own.
func userOf(status *authenticationv1.TokenReviewStatus) authenticationv1.UserInfo {
	if status.User.Username == anonymous {
		return authenticationv1.UserInfo{}
	}
	return status.User
}

// lasts returns how long an answer counts. A token is never believed after its end.
func (c *Callers) lasts(token string, who *identity) time.Duration {
	if who.user.Username == "" {
		return refusedFor
	}
	end, told := EndOf(token)
	if !told {
		return knownFor
	}
	return max(0, min(knownFor, end.Sub(c.clock.Now())))
}
