// SPDX-License-Identifier: Apache-2.0

package peers

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Kept is how far back it can be asked what was counted.
const Kept = 2 * time.Minute

const (
	// sampled is how often what was counted is noted: proxies tell it every ten seconds.
	sampled = 2 * time.Second
	// maxSlots is of how many variations one replica may tell.
	maxSlots = 2000
	// untold is after which time a replica tells of a variation no more: what it tells of now is
	// over. It tells of all of them every five seconds.
	untold = 15 * time.Second
)

// Tally has what the proxies of one replica have counted, now and before. The zero
// Tally has nothing.
type Tally struct {
	epoch time.Time
	// latest is when the replica told something last.
	latest time.Time
	slots  map[slot]*series
}

type slot struct{ namespace, service, variation string }

// series is what was counted of one variation, the latest last.
type series struct {
	now     Count
	told    time.Time
	samples []sample
}

type sample struct {
	at                time.Time
	completed, failed uint64
}

// Add what has been counted in all since an epoch. Of a later epoch nothing is known
// yet.
func (t *Tally) Add(epoch time.Time, counts []Count, now time.Time) error {
	if !epoch.Equal(t.epoch) {
		*t = Tally{epoch: epoch}
	}
	if t.slots == nil {
		t.slots = map[slot]*series{}
	}
	t.latest = now
	for _, c := range counts {
		if c.Failed > c.Completed {
			return errors.New("more requests failed than are over")
		}
		k := slot{c.Namespace, c.Service, c.Variation}
		s := t.slots[k]
		if s == nil || c.Completed < s.now.Completed || c.Failed < s.now.Failed {
			s = &series{}
			t.slots[k] = s
		}
		s.add(c, now)
	}
	if len(t.slots) > maxSlots {
		t.expire(now)
	}
	if len(t.slots) > maxSlots {
		return fmt.Errorf("it tells of more than %d variations", maxSlots)
	}
	return nil
}

func (s *series) add(c Count, now time.Time) {
	s.now, s.told = c, now
	if last := len(s.samples) - 1; last >= 0 && now.Sub(s.samples[last].at) < sampled {
		return
	}
	s.samples = append(s.samples, sample{now, c.Completed, c.Failed})
	// One that is older is what the oldest time that can be asked for is compared with.
	for len(s.samples) > 2 && now.Sub(s.samples[1].at) > Kept {
		s.samples = slices.Delete(s.samples, 0, 1)
	}
}

// expire what nobody tells of any more.
func (t *Tally) expire(now time.Time) {
	for k, s := range t.slots {
		if now.Sub(s.samples[len(s.samples)-1].at) > Kept {
			delete(t.slots, k)
		}
	}
}

// Since is what was counted of the variations of a service since a time, by name, and
// since when that is: a little later, or much later if nothing is known of the time
// before. It is the zero time when nothing is known at all.
func (t *Tally) Since(namespace, service string, since time.Time) (counts map[string]Count, from time.Time) {
	counts = map[string]Count{}
	for k, s := range t.slots {
		if k.namespace != namespace || k.service != service {
			continue
		}
		i := slices.IndexFunc(s.samples, func(x sample) bool { return !x.at.Before(since) })
		if i < 0 {
			i = len(s.samples) - 1
		}
		was, c := s.samples[i], s.now
		c.Completed -= was.completed
		c.Failed -= was.failed
		if t.latest.Sub(s.told) > untold {
			c.InFlight, c.Uncounted = 0, 0
		}
		counts[k.variation] = c
		if was.at.After(from) {
			from = was.at
		}
	}
	return counts, from
}
