// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"io"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"

	"github.com/plumbline-dev/plumbline/internal/assessor"
	"github.com/plumbline-dev/plumbline/internal/options"
)

func TestTheOptionsOfChecksReachTheAssessor(t *testing.T) {
	var o assessor.Options
	fs := flag.NewFlagSet("assessor", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	o.AddFlags(fs)
	args := []string{"--default-resync-period=10h", "--drift-interval=10m", "--drift-threshold=0.2", "--max-concurrent-checks=7"}
	if err := options.Parse(fs, args, func(string) (string, bool) { return "", false }); err != nil {
		t.Fatal(err)
	}
	s, err := newSetup(&o, &rest.Config{}, logr.Discard())
	if err != nil {
		t.Fatal(err)
	}
	if s.ResyncPeriod == nil || *s.ResyncPeriod != 10*time.Hour || s.DriftInterval != 10*time.Minute || s.DriftThreshold != 20 || s.MaxConcurrentChecks != 7 {
		t.Errorf("the period is %v, the interval %s, the threshold %d, and %d checks go on at once", s.ResyncPeriod, s.DriftInterval, s.DriftThreshold, s.MaxConcurrentChecks)
	}
}
