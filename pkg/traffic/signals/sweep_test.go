// SPDX-License-Identifier: Apache-2.0

package signals

import "testing"

func TestAProxyIsLetGo(t *testing.T) {
	for name, tc := range map[string]struct {
		then  func(world)
		early bool // let go before half an hour has passed since its last sign
		late  bool // let go after that
	}{
		"when its stream ended half an hour ago":   {func(w world) { w.Close("a", at(2)) }, false, true},
		"when its pod is gone, stream or not":      {func(w world) { w.End("a", at(2)) }, false, true},
		"never while it has a stream, and is mute": {func(world) {}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, Config{Proxies: 1})
			w.open("a", 0)
			w.tell("a", 1, stable, 0, answers(1))
			tc.then(w)
			if got := w.Open(Proxy{UID: "b"}, at(1700)); got != tc.early {
				t.Errorf("early there is room: %t", got)
			}
			if got := w.Open(Proxy{UID: "b"}, at(1900)); got != tc.late {
				t.Errorf("late there is room: %t", got)
			}
			left := 1
			if tc.late {
				left = 0
			}
			if got := w.Service("shop", "web", noon, at(1901)); len(got.Variations) != left {
				t.Errorf("the variations are %+v, want %d", got.Variations, left)
			}
		})
	}
}
