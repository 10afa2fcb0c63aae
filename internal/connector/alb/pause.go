// SPDX-License-Identifier: Apache-2.0

package alb

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
)

// The bounds of a pause after an answer that throttles.
const (
	shortestPause = time.Second
	longestPause  = time.Minute
)

// pause is a time without requests to an API that throttles. The zero value pauses no request.
type pause struct {
	// throttled counts the throttled requests since the last one that had another answer.
	throttled int
	until     time.Time
}

// ThrottledError says that the API of AWS refuses requests because there were too many. The router pauses until a time.
type ThrottledError struct{ Until time.Time }

func (e *ThrottledError) Error() string {
	return "AWS throttles requests; the next one is made after " + e.Until.UTC().Format(time.RFC3339)
}

// isThrottled tells whether an error of the SDK says that AWS throttles.
func isThrottled(err error) bool {
	return retry.IsErrorThrottles(retry.DefaultThrottles).IsErrorThrottle(err) == aws.TrueTernary
}

// extendPause returns the pause after one more throttled request. Each throttled request doubles the pause. Half of the
// pause is drawn, so the routers of several releases do not return together. random is from 0 to below 1.
func (p pause) extendPause(now time.Time, random float64) pause {
	length := longestPause
	if p.throttled < 6 {
		length = min(longestPause, shortestPause<<p.throttled)
	}
	return pause{p.throttled + 1, now.Add(length/2 + time.Duration(random*float64(length/2)))}
}

// callAPI makes a request, unless the API is paused. It returns a [ThrottledError] for a throttled request; each other
// answer ends the pause.
func callAPI[In, Out, Options any](ctx context.Context, r *Router, p *pause, do func(context.Context, *In, ...func(*Options)) (*Out, error), in *In) (*Out, error) {
	now := r.Now()
	if now.Before(p.until) {
		return nil, &ThrottledError{p.until}
	}
	out, err := do(ctx, in)
	if isThrottled(err) {
		*p = p.extendPause(now, r.Random())
		return nil, fmt.Errorf("%w: %w", &ThrottledError{p.until}, err)
	}
	*p = pause{}
	return out, err
}
