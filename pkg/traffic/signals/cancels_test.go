// SPDX-License-Identifier: Apache-2.0

package signals

import (
	"testing"

	"pgregory.net/rapid"
)

// preempted is a proxy that counts on while it reads its counters, because it waits for a processor in between. It
// knows the end of each request.
type preempted struct {
	real, read         Counts // since it began, now and as read last
	waiting, streaming uint64
	givenUp            uint64
}

// happens lets one thing happen to a request.
func (p *preempted) happens(t *rapid.T) {
	switch what := rapid.SampledFrom([]string{"begins", "begins", "is tried again", "is answered", "is answered", "is given up", "streams", "ends"}).Draw(t, "what"); {
	case what == "begins":
		p.real[Started]++
		p.waiting++
	case what == "is tried again": // the attempt before has reached no endpoint
		p.real[NotConnected]++
		p.real[Retried]++
	case p.waiting > 0 && what == "is answered":
		p.waiting--
		p.real[Completed]++
	case p.waiting > 0 && what == "is given up":
		p.waiting--
		p.givenUp++
	case p.waiting > 0 && what == "streams":
		p.waiting--
		p.streaming++
		p.real[Completed]++
	case p.streaming > 0 && what == "ends":
		p.streaming--
	}
}

// flush reads the counters one after the other, and then the requests in flight. Between two reads, so much happens.
func (p *preempted) flush(t *rapid.T, meanwhile int) (counts Counts, active uint64) {
	for _, of := range rapid.Permutation([]Counter{Started, NotConnected, Retried, Completed}).Draw(t, "order") {
		for range rapid.IntRange(0, meanwhile).Draw(t, "between") {
			p.happens(t)
		}
		counts[of] = p.real[of] - p.read[of]
		p.read[of] = p.real[of]
	}
	for range rapid.IntRange(0, meanwhile).Draw(t, "before the gauge") {
		p.happens(t)
	}
	return counts, p.waiting + p.streaming
}

// Of 10,919 requests one was counted as given up that was answered: the proxy had waited for a processor in two
// flushes in a row. It may wait in all flushes but one of three.
func TestNoRequestThatWasAnsweredIsCountedAsGivenUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, c, told, waited := &preempted{}, &cancels{}, uint64(0), 0
		tell := func(meanwhile int) {
			counts, active := p.flush(t, meanwhile)
			c.flush(&counts, active)
			if told += counts[Canceled]; told > p.givenUp {
				t.Fatalf("%d are counted, and %d were given up", told, p.givenUp)
			}
		}
		for range rapid.IntRange(1, 30).Draw(t, "flushes") {
			for range rapid.IntRange(0, 5).Draw(t, "requests") {
				p.happens(t)
			}
			meanwhile := 0
			if waited < 2 && rapid.Bool().Draw(t, "waits") {
				meanwhile = 3
				waited++
			} else {
				waited = 0
			}
			tell(meanwhile)
		}
		p.real[Completed] += p.waiting
		p.waiting, p.streaming = 0, 0
		for range agreed {
			tell(0)
		}
		if told != p.givenUp {
			t.Fatalf("%d are counted in the end, and %d were given up", told, p.givenUp)
		}
	})
}

// However long a proxy waits for a processor, its next flush shows which requests had ended.
func TestWhatWasGivenUpIsCertainOnceNoRequestEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, c := &preempted{}, &cancels{}
		for range rapid.IntRange(1, 20).Draw(t, "requests") {
			p.happens(t)
		}
		p.real[Completed] += p.waiting
		p.waiting, p.streaming = 0, 0
		counts, active := p.flush(t, 0)
		c.flush(&counts, active)
		first := counts[Canceled]
		counts, active = p.flush(t, 0)
		c.flush(&counts, active)
		if first != 0 || counts[Canceled] != p.givenUp {
			t.Fatalf("%d and %d are counted, and %d were given up", first, counts[Canceled], p.givenUp)
		}
	})
}
