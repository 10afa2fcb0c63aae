// SPDX-License-Identifier: Apache-2.0

//go:build integration

package xds

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// judge holds what clients were answered against the rules. No request may fail. A user whom the
// canary has answered may meet the stable version again only after the canary's share has shrunk, or
// while a proxy may have found no endpoint of the canary that it could reach.
type judge struct {
	began time.Time

	mu sync.Mutex
	// epoch grows whenever the users become free to move back, and when they are not any more.
	// An answer is judged if its request began in the epoch in which it ended.
	epoch int
	free  bool
	// by is the variation that has answered a user in this epoch.
	by     map[string]string
	events []string

	requests, judged, ramped int
	failed, moved            complaints
	slowest                  time.Duration
}

// complaints are counted; of the first ones there is a text.
type complaints struct {
	count int
	texts []string
}

const (
	// toldComplaints have a text.
	toldComplaints = 5
	// toldEvents are in that text, those before the complaint.
	toldEvents = 12
)

func newJudge() *judge { return &judge{began: time.Now(), by: map[string]string{}} }

// tell keeps an event.
func (j *judge) tell(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, j.stamp()+fmt.Sprintf(format, args...))
}

func (j *judge) stamp() string { return fmt.Sprintf("%8.3f s: ", time.Since(j.began).Seconds()) }

// liberate lets users move back from now on; the change that moves them comes after.
func (j *judge) liberate() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.free {
		j.free = true
		j.epoch++
	}
}

// bind holds users to what answers them from now on.
func (j *judge) bind() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.free, j.by = false, map[string]string{}
	j.epoch++
}

func (j *judge) isFree() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.free
}

// begins is the epoch in which a request begins.
func (j *judge) begins() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.epoch
}

// ends notes how a request ended that began in an epoch. One without a user is not held.
func (j *judge) ends(epoch int, what, user, variation string, took time.Duration, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.requests++
	j.slowest = max(j.slowest, took)
	if err != nil {
		j.complain(&j.failed, fmt.Sprintf("%s after %s: %v", what, took, err))
		return
	}
	if user == "" || j.free || epoch != j.epoch {
		return
	}
	j.judged++
	switch before := j.by[user]; {
	case before == "canary" && variation != "canary":
		j.complain(&j.moved, fmt.Sprintf("%s: %s was moved back to %s", what, user, variation))
	case before == "stable" && variation == "canary":
		j.ramped++
	}
	j.by[user] = variation
}

// answering are the versions that have answered users in this epoch.
func (j *judge) answering() map[string]bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	seen := map[string]bool{}
	for _, version := range j.by {
		seen[version] = true
	}
	return seen
}

// moves counts the users whom the canary answers after the stable version did.
func (j *judge) moves() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.ramped
}

func (j *judge) complain(of *complaints, text string) {
	of.count++
	if len(of.texts) < toldComplaints {
		last := j.events[max(0, len(j.events)-toldEvents):]
		of.texts = append(of.texts, j.stamp()+text+"; before that:\n"+strings.Join(last, "\n"))
	}
}

// verdict fails the test for each rule that was broken.
func (j *judge) verdict(t *testing.T) {
	t.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	t.Logf("%d events, %d requests, of which the slowest took %s; %d answers of users were judged in %d epochs, %d users moved to the canary",
		len(j.events), j.requests, j.slowest, j.judged, j.epoch, j.ramped)
	if j.failed.count > 0 {
		t.Errorf("%d of %d requests failed:\n%s", j.failed.count, j.requests, strings.Join(j.failed.texts, "\n"))
	}
	if j.moved.count > 0 {
		t.Errorf("%d times a user was moved back:\n%s", j.moved.count, strings.Join(j.moved.texts, "\n"))
	}
	if j.judged == 0 || j.ramped == 0 {
		t.Errorf("%d answers were judged, and %d users moved to the canary: the test has shown too little", j.judged, j.ramped)
	}
}
