// SPDX-License-Identifier: Apache-2.0

package signals

// failover are the numbers of requests that the stable variation served for another one, and
// that are not in the flush which told of them: a proxy reads its counters while requests go on,
// and a request begins before it has a status.
type failover struct {
	started, completed uint64
	classes            [5]uint64
}

// exclude takes the requests out that the stable variation served: they say nothing about
// either. Calls of gRPC and cancellations have no number of their own for these. In a flush
// with both, none of these can be told apart, and none counts.
func (c *Counts) exclude(served *Counts, left *failover) {
	n := served[Completed]
	if *served == (Counts{}) && *left == (failover{}) {
		return
	}
	left.started, left.completed = left.started+n, left.completed+n
	for i := range left.classes {
		left.classes[i] += served[int(Class1)+i]
	}
	take(&c[Started], &left.started)
	take(&c[Completed], &left.completed)
	for i := range left.classes {
		take(&c[int(Class1)+i], &left.classes[i])
	}
	latency, other := c.Latency(), served.Latency()
	for i := range latency {
		latency[i] -= min(latency[i], other[i])
	}
	c[FailedOver] += n
	if n > 0 {
		c[Canceled] = 0
		c.excludeCalls()
	}
}

// take moves as much as there is.
func take(from, left *uint64) {
	n := min(*from, *left)
	*from -= n
	*left -= n
}

// excludeCalls leaves everything out that has a status, if there are calls of gRPC.
func (c *Counts) excludeCalls() {
	if c[GRPCOK]+c[GRPCRefused]+c[GRPCUnavailable]+c[GRPCFailed] == 0 {
		return
	}
	c[FailedOver] += c[Completed]
	for _, of := range []Counter{Started, Completed, Class1, Class2, Class3, Class4, Class5, GRPCOK, GRPCRefused, GRPCUnavailable, GRPCFailed} {
		c[of] = 0
	}
	clear(c.Latency())
}
