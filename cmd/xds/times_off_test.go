// SPDX-License-Identifier: Apache-2.0

//go:build !failpoints

package main

import "testing"

func TestANormalBuildHasTheTimesOfProduction(t *testing.T) {
	got, err := timesOf(func(string) string { return "window=1s,settles=1s" })
	if err != nil || got != (times{}) {
		t.Errorf("%s is read: %+v, %v", timesVariable, got, err)
	}
}
