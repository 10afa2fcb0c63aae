// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"go.uber.org/goleak"

	"github.com/plumbline-dev/plumbline/hack/cluster/image"
)

func TestMain(m *testing.M) {
	code := m.Run()
	// Idle connections are kept for the next call; they are no leak.
	http.DefaultClient.CloseIdleConnections()
	if transport, ok := remote.DefaultTransport.(*http.Transport); ok {
		transport.CloseIdleConnections()
	}
	// The library does not read the answer to its request to cancel an upload.
	unread := []goleak.Option{
		goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"),
		goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"),
	}
	if err := goleak.Find(unread...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = max(code, 1)
	}
	os.Exit(code)
}

var loopback = netip.MustParseAddrPort("127.0.0.1:0")

// serve runs a registry on two addresses until the test ends.
func serve(t *testing.T) (first, second string) {
	t.Helper()
	server, err := Listen(t.Context(), []netip.AddrPort{loopback, loopback})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background()) // it ends in the cleanup, which waits
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	t.Cleanup(func() {
		const limit = 10 * time.Second
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("serving: %v", err)
			}
		case <-time.After(limit):
			_, err := net.DialTimeout("tcp", server.listeners[0].Addr().String(), limit)
			t.Errorf("waited %s until the registry ends; last seen: dialing it returned %v", limit, err)
		}
	})
	return server.listeners[0].Addr().String(), server.listeners[1].Addr().String()
}

func archive(t *testing.T, content string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "thing.tar")
	spec := image.Spec{Tag: "docker.io/plumbline/thing:dev", User: image.NonRoot, Entries: []image.Entry{{Path: "/thing", Data: []byte(content)}}}
	if _, err := image.WriteArchive(spec, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestWhatIsPushedAtOneAddressIsPulledAtTheOther(t *testing.T) {
	first, second := serve(t)
	to := image.Destination{Registry: first + "/team", TagSuffix: "-0123"}
	if err := image.CheckPush("docker.io/plumbline/thing:dev", to); err != nil {
		t.Fatal(err)
	}
	pushed, err := image.Push(t.Context(), archive(t, "one"), to)
	if err != nil {
		t.Fatal(err)
	}
	if want := first + "/team/plumbline/thing:dev-0123"; pushed.String() != want {
		t.Errorf("pushed as %s, want %s", pushed, want)
	}
	reference, err := name.ParseReference(second + "/team/plumbline/thing:dev-0123")
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := remote.Image(reference, remote.WithContext(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if layers, err := pulled.Layers(); err != nil || len(layers) != 1 {
		t.Errorf("%d layers (%v), want 1", len(layers), err)
	}
}

func TestTheCheckPushesNothing(t *testing.T) {
	address, _ := serve(t)
	if err := image.CheckPush("docker.io/plumbline/thing:dev", image.Destination{Registry: address}); err != nil {
		t.Fatal(err)
	}
	response, err := http.Get("http://" + address + "/v2/plumbline/thing/manifests/dev")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusNotFound {
		t.Errorf("after the check: %s, want 404", response.Status)
	}
}

func TestCheckPushNamesARegistryThatDoesNotAnswer(t *testing.T) {
	server, err := Listen(t.Context(), []netip.AddrPort{loopback})
	if err != nil {
		t.Fatal(err)
	}
	address := server.listeners[0].Addr().String()
	if err := server.close(); err != nil {
		t.Fatal(err)
	}
	err = image.CheckPush("docker.io/plumbline/thing:dev", image.Destination{Registry: address})
	if err == nil || !strings.Contains(err.Error(), address) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v, want an error that names %s and says that the connection was refused", err, address)
	}
}

func TestAnAddressInUseIsAnErrorAndLeavesNoListener(t *testing.T) {
	taken, err := Listen(t.Context(), []netip.AddrPort{loopback})
	if err != nil {
		t.Fatal(err)
	}
	defer taken.close()
	busy := netip.MustParseAddrPort(taken.listeners[0].Addr().String())
	free, err := Listen(t.Context(), []netip.AddrPort{loopback})
	if err != nil {
		t.Fatal(err)
	}
	other := netip.MustParseAddrPort(free.listeners[0].Addr().String())
	if err := free.close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(t.Context(), []netip.AddrPort{other, busy}); err == nil || !strings.Contains(err.Error(), busy.String()) {
		t.Fatalf("got %v, want an error that names %s", err, busy)
	}
	again, err := Listen(t.Context(), []netip.AddrPort{other})
	if err != nil {
		t.Fatalf("the first address was not given back: %v", err)
	}
	if err := again.close(); err != nil {
		t.Error(err)
	}
}
