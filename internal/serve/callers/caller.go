// SPDX-License-Identifier: Apache-2.0

package callers

import (
	"context"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
)

// Caller is the user of one request.
type Caller struct {
	User authenticationv1.UserInfo
	// MayWrite tells whether the API server itself takes the token. Other tokens can read alone.
	MayWrite bool
	// Writes tells whether the request is one that may write: its reads have to see its own writes.
	Writes bool
	// Until is when the token ends; zero for a token that does not tell.
	Until time.Time
	// renew identifies the token anew.
	renew func(context.Context) (*Caller, error)
	// token is a function, so that no formatting of a Caller shows the token.
	token func() string
}

// Token returns the token of the caller, for requests to the API server in the caller's name.
func (c *Caller) Token() string { return c.token() }

// Renew returns whose the token is by now, see [Callers.Identify].
func (c *Caller) Renew(ctx context.Context) (*Caller, error) { return c.renew(ctx) }

type key struct{}

// With adds a caller to a context.
func With(ctx context.Context, c *Caller) context.Context { return context.WithValue(ctx, key{}, c) }

// Of returns the caller of a context; nil without one.
func Of(ctx context.Context) *Caller {
	c, _ := ctx.Value(key{}).(*Caller)
	return c
}
