// SPDX-License-Identifier: Apache-2.0

//go:build !failpoints

package main

import (
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/executor"
)

func TestANormalBuildCannotBeMadeToFail(t *testing.T) {
	t.Setenv("PLUMBLINE_FAILPOINT", "clock:1h;mute;kill:before:write web")
	setup := executor.Setup{Config: &rest.Config{}, Clock: clock.RealClock{}}
	if err := underFaults(&setup); err != nil {
		t.Fatal(err)
	}
	_, unchanged := setup.Clock.(clock.RealClock)
	if setup.Config.WrapTransport != nil || setup.Evidence.Store != nil || !unchanged {
		t.Errorf("the setup was changed: %+v", setup)
	}
}
