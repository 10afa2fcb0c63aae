// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// faults are what a bad version does to the orders that it takes. Health stays good, as it does in most
// bad versions.
type faults struct {
	// Errors, Hangs and CallErrors are shares of the orders from 0 to 1: answered with status 500, never
	// answered, and of gRPC answered with INTERNAL.
	Errors, Hangs, CallErrors share
	// Delay is what each answer takes longer.
	Delay time.Duration
	// Crash is the age at which the process ends with status 1; 0 is never.
	Crash time.Duration
	// Hoard is the age at which the process begins to take memory that it never gives back; 0 is never.
	Hoard time.Duration
}

// spoiledText is the body of an order that the faults of a version fail: no proxy answers so.
const spoiledText = "this version is bad"

// errSpoiled is an order that failed by the faults of a version.
var errSpoiled = errors.New(spoiledText)

type share float64

// parseFaults reads "errors=5,hangs=1,calls=5,delay=300ms,crash=10s": shares are percentages.
func parseFaults(text string) (faults, error) {
	var f faults
	for field := range strings.SplitSeq(text, ",") {
		if field = strings.TrimSpace(field); field == "" {
			continue
		}
		name, value, _ := strings.Cut(field, "=")
		var err error
		switch name {
		case "errors":
			f.Errors, err = parseShare(value)
		case "hangs":
			f.Hangs, err = parseShare(value)
		case "calls":
			f.CallErrors, err = parseShare(value)
		case "delay":
			f.Delay, err = parseAge(value)
		case "crash":
			f.Crash, err = parseAge(value)
		case "hoards":
			f.Hoard, err = parseAge(value)
		default:
			err = errors.New("want errors, hangs, calls, delay, crash or hoards")
		}
		if err != nil {
			return faults{}, fmt.Errorf("SHOP_FAULTS has %q: %w", field, err)
		}
	}
	return f, nil
}

// mostHoarded bounds what a process takes, so that a pod without a limit does not end its node.
const mostHoarded = 256 << 20

// hoard takes memory, and touches it, until there is enough.
func hoard() [][]byte {
	const piece = 1 << 20
	var all [][]byte
	for len(all) < mostHoarded/piece {
		all = append(all, bytes.Repeat([]byte{1}, piece))
	}
	return all
}

func parseShare(text string) (share, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || !(n >= 0 && n <= 100) {
		return 0, errors.New("want a percentage from 0 to 100")
	}
	return share(n / 100), nil
}

func parseAge(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, errors.New("want a duration such as 300ms")
	}
	return d, nil
}

// counted tells of each order in turn whether it belongs to a share: of any 100 orders one after the
// other, 5 belong to a share of 5 %.
type counted struct {
	share share
	n     atomic.Uint64
}

func (c *counted) next() bool {
	n := float64(c.n.Add(1))
	return math.Floor(n*float64(c.share)+1e-9) > math.Floor((n-1)*float64(c.share)+1e-9)
}

// spoil has a handler of orders do what the faults say.
func (f faults) spoil(next http.Handler) http.Handler {
	fails, hangs := &counted{share: f.Errors}, &counted{share: f.Hangs}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.wait(r.Context())
		switch {
		case hangs.next():
			<-r.Context().Done()
		case fails.next():
			http.Error(w, spoiledText, http.StatusInternalServerError)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// wait for the delay, or until the client leaves.
func (f faults) wait(ctx context.Context) {
	if f.Delay == 0 {
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(f.Delay):
	}
}

// spoilCalls returns what becomes of each call by gRPC: nil, or an error with a code.
func (f faults) spoilCalls() func(context.Context) error {
	hangs, calls := &counted{share: f.Hangs}, &counted{share: f.CallErrors}
	return func(ctx context.Context) error {
		f.wait(ctx)
		switch {
		case hangs.next():
			<-ctx.Done()
			return status.FromContextError(ctx.Err()).Err()
		case calls.next():
			return status.Error(codes.Internal, spoiledText)
		}
		return nil
	}
}
