// SPDX-License-Identifier: Apache-2.0

//go:build failpoints

package main

import (
	"fmt"
	"strings"
	"time"
)

// timesOf reads a list of NAME=DURATION, separated by commas. The names are goodbye,
// window, acknowledged, ledger, counts, settles, sweep and keptfor.
func timesOf(environment func(string) string) (times, error) {
	var t times
	fields := map[string]*time.Duration{
		"goodbye": &t.mesh.Goodbye, "window": &t.mesh.Window,
		"acknowledged": &t.abrelease.Acknowledged, "ledger": &t.abrelease.Ledger,
		"counts": &t.abrelease.Counts, "settles": &t.abrelease.Settles,
		"sweep": &t.abrelease.Sweep, "keptfor": &t.abrelease.KeptFor,
	}
	text := environment(timesVariable)
	if text == "" {
		return t, nil
	}
	for item := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(item, "=")
		field, known := fields[name]
		if !known {
			return times{}, fmt.Errorf("reading %s: there is no time %q", timesVariable, name)
		}
		d, err := time.ParseDuration(value)
		if err != nil {
			return times{}, fmt.Errorf("reading %s: %w", timesVariable, err)
		}
		if d <= 0 {
			return times{}, fmt.Errorf("reading %s: %s must be positive", timesVariable, name)
		}
		*field = d
	}
	return t, nil
}
