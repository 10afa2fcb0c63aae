// SPDX-License-Identifier: Apache-2.0

package servertime

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	testingclock "k8s.io/utils/clock/testing"

	"github.com/plumbline-dev/plumbline/pkg/remediate/window"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// asked lets a clock hear one answer of a server whose time is noon. elapsed is the monotonic
// clock.
func asked(t *testing.T, own *testingclock.FakePassiveClock, elapsed *atomic.Int64, takes time.Duration, date string) *Keeper {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		own.SetTime(own.Now().Add(takes))
		elapsed.Add(int64(takes))
		w.Header().Set("Date", date)
	}))
	t.Cleanup(server.Close)
	k := New(own)
	k.elapsed = func() time.Duration { return time.Duration(elapsed.Load()) }
	config := &rest.Config{Host: server.URL}
	k.Watch(config)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return k
}

func TestTheServersTime(t *testing.T) {
	date := noon.Format(http.TimeFormat)
	tests := map[string]struct {
		ahead, takes time.Duration
		date         string
		later, set   time.Duration
		skew         time.Duration
		now          time.Time
	}{
		"a clock that is right":            {500 * time.Millisecond, 0, date, 0, 0, 0, noon.Add(500 * time.Millisecond)},
		"a clock that is an hour ahead":    {time.Hour, 0, date, 0, 0, time.Hour - 500*time.Millisecond, noon.Add(500 * time.Millisecond)},
		"a clock that is an hour behind":   {-time.Hour, 0, date, 0, 0, -time.Hour - 500*time.Millisecond, noon.Add(500 * time.Millisecond)},
		"it goes on":                       {time.Hour, 0, date, time.Minute, 0, time.Hour - 500*time.Millisecond, noon.Add(time.Minute + 500*time.Millisecond)},
		"half of the way is to the server": {0, 800 * time.Millisecond, date, 0, 0, -100 * time.Millisecond, noon.Add(900 * time.Millisecond)},
		"an answer that took too long":     {time.Hour, 2 * time.Second, date, 0, 0, window.SkewUnknown, noon.Add(time.Hour + 2*time.Second)},
		"no time":                          {time.Hour, 0, "", 0, 0, window.SkewUnknown, noon.Add(time.Hour)},
		"no time that can be read":         {time.Hour, 0, "noon", 0, 0, window.SkewUnknown, noon.Add(time.Hour)},
		"what was heard six minutes ago":   {time.Hour, 0, date, 6 * time.Minute, 0, window.SkewUnknown, noon.Add(time.Hour + 6*time.Minute)},
		"the own clock is set right":       {time.Hour, 0, date, time.Minute, -time.Hour, -500 * time.Millisecond, noon.Add(time.Minute + 500*time.Millisecond)},
		// A clock was set back within a maintenance window. Until the next answer that told the time,
		// for five minutes at most, the window seemed to be open for as much longer.
		"the own clock is set back":    {0, 0, date, time.Minute, -4 * time.Minute, -4*time.Minute - 500*time.Millisecond, noon.Add(time.Minute + 500*time.Millisecond)},
		"the own clock is set forward": {0, 0, date, time.Minute, 4 * time.Minute, 4*time.Minute - 500*time.Millisecond, noon.Add(time.Minute + 500*time.Millisecond)},
		"it is set back and not told":  {0, 0, date, 6 * time.Minute, -6 * time.Minute, window.SkewUnknown, noon},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			own := testingclock.NewFakePassiveClock(noon.Add(tc.ahead))
			var elapsed atomic.Int64
			k := asked(t, own, &elapsed, tc.takes, tc.date)
			own.SetTime(own.Now().Add(tc.later + tc.set))
			elapsed.Add(int64(tc.later))
			if got := k.Skew(); got != tc.skew {
				t.Errorf("the clock is %s ahead, want %s", got, tc.skew)
			}
			if got := k.Now(); !got.Equal(tc.now) {
				t.Errorf("it is %s, want %s", got, tc.now)
			}
			if got := k.Since(noon); got != tc.now.Sub(noon) {
				t.Errorf("noon was %s ago, want %s", got, tc.now.Sub(noon))
			}
		})
	}
}

func TestAClockThatNobodyComparedIsNotTrusted(t *testing.T) {
	k := New(testingclock.NewFakePassiveClock(noon))
	if k.Skew() != window.SkewUnknown || !k.Now().Equal(noon) {
		t.Errorf("skew %s, now %s", k.Skew(), k.Now())
	}
}
