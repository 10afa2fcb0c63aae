// SPDX-License-Identifier: Apache-2.0

package certs

import (
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"time"
)

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) { return t(req) }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestTheAPIServersClockCounts(t *testing.T) {
	tests := map[string]struct {
		dates []string // of the answers, in this order; empty: the header is missing
		want  time.Time
	}{
		"nothing heard yet":                    {want: start},
		"both clocks agree":                    {dates: []string{start.Format(http.TimeFormat)}, want: start},
		"a difference of seconds is no matter": {dates: []string{start.Add(59 * time.Second).Format(http.TimeFormat)}, want: start},
		"our clock is a day ahead":             {dates: []string{start.Add(-24 * time.Hour).Format(http.TimeFormat)}, want: start.Add(-24 * time.Hour)},
		"our clock is a day behind":            {dates: []string{start.Add(24 * time.Hour).Format(http.TimeFormat)}, want: start.Add(24 * time.Hour)},
		"our clock was put right meanwhile":    {dates: []string{start.Add(24 * time.Hour).Format(http.TimeFormat), start.Format(http.TimeFormat)}, want: start},
		"a header that is no date":             {dates: []string{start.Add(24 * time.Hour).Format(http.TimeFormat), "soon"}, want: start.Add(24 * time.Hour)},
		"an answer without the header":         {dates: []string{""}, want: start},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := NewClock(quiet())
			c.local = func() time.Time { return start }
			for _, date := range tc.dates {
				client := c.Listen(transport(func(*http.Request) (*http.Response, error) {
					header := http.Header{}
					if date != "" {
						header.Set("Date", date)
					}
					return &http.Response{Header: header, Body: http.NoBody}, nil
				}))
				response, err := client.RoundTrip(nil)
				if err != nil {
					t.Fatal(err)
				}
				_ = response.Body.Close()
			}
			if got := c.Now(); !got.Equal(tc.want) {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
	broken := errors.New("broken")
	c := NewClock(quiet())
	response, err := c.Listen(transport(func(*http.Request) (*http.Response, error) { return nil, broken })).RoundTrip(nil)
	if !errors.Is(err, broken) || c.Ahead() != 0 {
		if response != nil {
			_ = response.Body.Close()
		}
		t.Errorf("a failed call: %v, %v", err, c.Ahead())
	}
}
