// SPDX-License-Identifier: Apache-2.0

//go:build !failpoints

package main

import (
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/plumbline-dev/plumbline/internal/controller/execute"
)

func TestANormalBuildCannotBeMadeToFail(t *testing.T) {
	t.Setenv("PLUMBLINE_FAILPOINT", "clock:1h;redis:5s;mute;kill:before:write web")
	setup := execute.Setup{Config: &rest.Config{}, Clock: clock.RealClock{}}
	if err := underFaults(&setup); err != nil {
		t.Fatal(err)
	}
	if budget, err := redisBudget(); budget != 0 || err != nil {
		t.Errorf("Redis is waited for %s, %v", budget, err)
	}
	_, unchanged := setup.Clock.(clock.RealClock)
	if setup.Config.WrapTransport != nil || setup.Evidence.Store != nil || !unchanged {
		t.Errorf("the setup was changed: %+v", setup)
	}
}
