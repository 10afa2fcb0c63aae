// SPDX-License-Identifier: Apache-2.0

package signals

// torn is what was counted in the flush before of requests whose other numbers may be in
// this one: a proxy reads its counters while requests go on. Of each thread that can be
// one request, and many requests if the proxy has to wait for a processor meanwhile.
type torn struct {
	timeouts uint64
	// unsent are the requests that reached no endpoint, less those that were told as calls
	// that are Unavailable. Below zero a retry was told before the attempt that failed. All
	// of a flush explain calls in the next flush; after that, one request a thread does.
	unsent int64
	// unavailable are the calls of the flush before that are Unavailable, and had not been told
	// to have reached no endpoint.
	unavailable uint64
}

const (
	// threads of a proxy, by default.
	threads = 2
	// maxBefore bounds the retries that are told before the attempts that failed.
	maxBefore = 1_000
)

// derive what one flush of one proxy does not say plainly. Envoy 1.40 was asked for
// each kind of request, see the package's integration test.
func (c *Counts) derive(t *torn) {
	// A time-out is a 504 right after, unless the answer had begun.
	class5 := c[Class5] - min(c[Class5], t.timeouts)
	http := max(class5, c[TimedOut])
	t.timeouts = min(threads, c[TimedOut]-min(class5, c[TimedOut]))
	c[Failed] = http + c[GRPCFailed] + c.deriveUnavailable(t)
	c.Latency()[Buckets-1] += c[TimedOut]
}

// deriveUnavailable returns the calls that the application answered as Unavailable. The call
// that the proxy answers for want of an endpoint is Unavailable too, and among the 5xx
// already. Many of these may end while the proxy reads its counters, so a call counts one
// flush later, when no attempt was told that explains it.
func (c *Counts) deriveUnavailable(t *torn) (answered uint64) {
	// Only attempts that reached no endpoint are retried: the others are requests that ended so.
	fresh := int64(c.unsent()) - int64(c[Retried]) //nolint:gosec // bounded when it is read
	unsent := t.unsent + fresh
	match := func(calls uint64) (left uint64) {
		n := min(calls, uint64(max(0, unsent)))
		unsent -= int64(n) //nolint:gosec // at most unsent
		return calls - n
	}
	answered = match(t.unavailable)
	t.unavailable = match(c[GRPCUnavailable])
	t.unsent = min(max(threads, fresh), max(-maxBefore, unsent))
	return answered
}

// unsent are the attempts that reached no endpoint.
func (c *Counts) unsent() uint64 { return c[NoneHealthy] + c[NotConnected] + c[Overflowed] }

// unanswered are the requests that have begun less those that have a status.
func (c *Counts) unanswered() int64 {
	begun := c[Started] + c[Abandoned] + c.unsent()
	return int64(begun) - int64(c[Retried]) - int64(c[Completed]) //nolint:gosec // bounded when it is read
}
