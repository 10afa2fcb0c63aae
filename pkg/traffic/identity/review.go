// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"
	"golang.org/x/time/rate"
	authenticationv1 "k8s.io/api/authentication/v1"
	"k8s.io/utils/lru"
)

const (
	// memory is how long an answer is remembered: a proxy opens two streams at once.
	memory = 5 * time.Second
	// opaqueLife is how long an opaque token is taken to live, which does not say so:
	// the shortest life that Kubernetes gives one.
	opaqueLife = 10 * time.Minute

	userPrefix = "system:serviceaccount:"
	podNameKey = "authentication.kubernetes.io/pod-name"
	podUIDKey  = "authentication.kubernetes.io/pod-uid"
)

// Limits bound the reviews of one kind; there are two kinds, tokens whose signature
// is known to be good, and others. A field that is zero has a default.
type Limits struct {
	PerSecond  float64 // 100
	Burst      int     // 200
	Concurrent int     // 16
}

func (l Limits) orDefault() Limits {
	if l.PerSecond == 0 {
		l.PerSecond = 100
	}
	if l.Burst == 0 {
		l.Burst = 200
	}
	if l.Concurrent == 0 {
		l.Concurrent = 16
	}
	return l
}

// remembered is how many answers can matter: more are not given while one is kept.
func (l Limits) remembered() int { return 2 * (l.Burst + int(l.PerSecond*memory.Seconds())) }

// lane is the bound of one kind. Who finds it full goes away: a proxy comes back by
// itself, and those that wait would only be more.
type lane struct {
	rate  *rate.Limiter
	slots chan struct{}
}

func newLane(l Limits) *lane {
	return &lane{rate: rate.NewLimiter(rate.Limit(l.PerSecond), l.Burst), slots: make(chan struct{}, l.Concurrent)}
}

func (l *lane) enter(now time.Time) bool {
	select {
	case l.slots <- struct{}{}:
	default:
		return false
	}
	if !l.rate.AllowN(now, 1) {
		l.leave()
		return false
	}
	return true
}

func (l *lane) leave() { <-l.slots }

// reviews asks the API server about tokens of one audience, about each one once.
type reviews struct {
	api      API
	audience string
	now      func() time.Time
	flight   singleflight.Group
	// answers by the token's SHA-256: what is kept must not depend on its length, nor
	// be a token.
	answers *lru.Cache
}

// answer of the API server about a token: a proxy, or a reason.
type answer struct {
	proxy Proxy
	why   Reason
	until time.Time
}

// ask gives the API server's answer, within the bounds of a lane.
func (r *reviews) ask(ctx context.Context, token string, l *lane) (answer, error) {
	id := sha256.Sum256([]byte(token))
	result, err, _ := r.flight.Do(string(id[:]), func() (any, error) {
		if before, ok := r.answers.Get(id); ok && r.now().Before(before.(answer).until) {
			return before, nil
		}
		if !l.enter(r.now()) {
			return answer{}, refuse(ReasonBusy)
		}
		defer l.leave()
		// Others wait for it, so it does not end with who was the first.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		status, err := r.api.Review(ctx, token, r.audience)
		if err != nil {
			return answer{}, &Error{Reason: ReasonUnavailable, cause: err}
		}
		a := judge(status, r.audience, r.now())
		r.answers.Add(id, a)
		return a, nil
	})
	return result.(answer), err
}

// judge reads a review.
func judge(status authenticationv1.TokenReviewStatus, audience string, now time.Time) answer {
	user := status.User
	account, isAccount := strings.CutPrefix(user.Username, userPrefix)
	namespace, name, _ := strings.Cut(account, ":")
	a := answer{until: now.Add(memory), proxy: Proxy{
		Namespace: namespace, ServiceAccount: name, Pod: only(user.Extra[podNameKey]), PodUID: only(user.Extra[podUIDKey]),
		Expires: now.Add(opaqueLife), Reviewed: true,
	}}
	switch {
	case !status.Authenticated:
		a.why = ReasonRefused
	case !slices.Contains(status.Audiences, audience):
		// An authenticator that knows no audiences names none.
		a.why = ReasonAudience
	case !isAccount, namespace == "", name == "":
		a.why = ReasonMalformed
	case a.proxy.Pod == "", a.proxy.PodUID == "":
		a.why = ReasonNotBound
	}
	return a
}

// only is the value of a list of one.
func only(values []string) string {
	if len(values) != 1 {
		return ""
	}
	return values[0]
}
