// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"time"

	"github.com/plumbline-dev/plumbline/pkg/apis/plumbline/v1alpha1"
)

// News is one thing that is new about a release: exactly one of the fields is set.
type News struct {
	// Event is a line of the history.
	Event *v1alpha1.RolloutEvent
	// Gone counts lines of the history that came and went unseen.
	Gone int64
	// Wait is what the run waits for now.
	Wait *v1alpha1.RolloutWait
}

// Seen is what was told of a release. The zero value has told nothing.
type Seen struct {
	// event is the number of the last line of the history; began says that there was a first look.
	event int64
	began bool
	wait  waitKey
}

// waitKey tells waits apart. The message is no part of it, as counts in it change all the time.
type waitKey struct {
	reason          string
	since, deadline time.Time
}

// Since returns what is new since the last look, in the order of time, and the look that has told it. The
// first look tells the lines of the run that began last, and no older ones.
func (s Seen) Since(in *v1alpha1.RolloutStatus) ([]News, Seen) {
	var news []News
	if in == nil {
		return nil, s
	}
	next := s
	next.began = true
	for i := range in.History {
		e := &in.History[i]
		isOld := !s.began && in.Run != nil && e.Run < in.Run.Number
		if e.Number <= next.event {
			continue
		}
		if missing := e.Number - next.event - 1; s.began && missing > 0 {
			news = append(news, News{Gone: missing})
		}
		if next.event = e.Number; !isOld {
			news = append(news, News{Event: e})
		}
	}
	next.wait = waitKey{}
	if w := in.Waiting; w != nil {
		next.wait = waitKey{reason: w.Reason, since: w.StartTime.UTC()}
		if w.DeadlineTime != nil {
			next.wait.deadline = w.DeadlineTime.UTC()
		}
		if next.wait != s.wait {
			news = append(news, News{Wait: w})
		}
	}
	return news, next
}
