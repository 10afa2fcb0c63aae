// SPDX-License-Identifier: Apache-2.0

//go:build integration

package redirect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

const noTable = "# there is no table inet plumbline\n"

// has compares what --check tells.
func (n namespace) has(t *testing.T, code int, want string, args ...string) {
	t.Helper()
	r := n.redirect(t, root, append([]string{"--check"}, args...)...)
	if diff := cmp.Diff(want, r.out); diff != "" || r.code != code {
		t.Errorf("exit code %d, want %d; the table (-want +got):\n%s\n%s", r.code, code, diff, r.err)
	}
}

func TestSetTwiceIsTheSameAsOnce(t *testing.T) {
	pod := newNamespace(t)
	pod.has(t, 1, noTable, arguments()...)
	first := pod.redirect(t, root, arguments()...)
	pod.has(t, 0, first.out, arguments()...)
	second := pod.redirect(t, root, arguments()...)
	if diff := cmp.Diff(first.out, second.out); diff != "" || second.code != 0 {
		t.Errorf("exit code %d; the second time (-first +second):\n%s\n%s", second.code, diff, second.err)
	}
	pod.has(t, 0, first.out, arguments()...)
}

func TestOtherArgumentsReplaceAllOfTheRules(t *testing.T) {
	pod := newNamespace(t)
	pod.mustRedirect(t, arguments()...)
	others := []string{"--proxy-uid=15701", "--capture-port=15002"}
	before := pod.redirect(t, root, append(others, "--check")...)
	if before.code != 1 || !strings.Contains(before.out, "skuid 15700") {
		t.Errorf("%+v", before)
	}
	after := pod.redirect(t, root, others...)
	pod.has(t, 0, after.out, others...)
	if strings.Contains(after.out, "15700") {
		t.Errorf("something is left:\n%s", after.out)
	}
}

func TestAsManyExclusionsAsThereMayBe(t *testing.T) {
	pod := newNamespace(t)
	var ports, ranges []string
	for i := range 64 {
		ports = append(ports, fmt.Sprint(20000+i))
		ranges = append(ranges, fmt.Sprintf("2001:db8:%x::/48", i))
	}
	args := []string{
		"--proxy-uid=15700", "--capture-port=15001", "--ipv6",
		"--exclude-ports=" + strings.Join(ports, ","), "--exclude-cidrs=" + strings.Join(ranges, ","),
	}
	pod.mustRedirect(t, args...)
	r := pod.redirect(t, root, append(args, "--check")...)
	if got := strings.Count(r.out, " accept\n"); r.code != 0 || got != 128+3 {
		t.Errorf("exit code %d, %d rules that accept:\n%s%s", r.code, got, r.out, r.err)
	}
}

func TestWhatCannotBeSetLeavesTheNamespaceAsItWas(t *testing.T) {
	const nobody = 65534
	for name, tc := range map[string]struct {
		uid  uint32
		args []string
		want string
	}{
		"a wrong argument":        {root, []string{"--exclude-ports=0"}, "from 1 to 65535"},
		"root as the proxy":       {root, []string{"--proxy-uid=0"}, "--proxy-uid: 0"},
		"no right to change it":   {nobody, nil, "needs the capability NET_ADMIN"},
		"the way out of no right": {nobody, nil, "plumbline.dev/inject-mode=explicit"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newNamespace(t)
			wrong := append(arguments(), tc.args...)
			refused := func() {
				t.Helper()
				r := pod.redirect(t, tc.uid, wrong...)
				if r.code != 1 || r.out != "" || !strings.Contains(r.err, tc.want) {
					t.Errorf("%+v, want exit code 1 and %q", r, tc.want)
				}
			}
			refused()
			pod.has(t, 1, noTable, arguments()...)
			before := pod.redirect(t, root, arguments()...)
			refused()
			pod.has(t, 0, before.out, arguments()...)
		})
	}
}

func TestWhatOthersDidToTheTableIsSeenAndUndone(t *testing.T) {
	table := &nftables.Table{Name: "plumbline", Family: nftables.TableFamilyINet}
	output := &nftables.Chain{Name: "output", Table: table}
	counter := []expr.Any{&expr.Counter{}}
	for name, tc := range map[string]struct {
		change func(*nftables.Conn)
		want   string
	}{
		"a rule more": {func(c *nftables.Conn) {
			c.InsertRule(&nftables.Rule{Table: table, Chain: output, Exprs: counter})
		}, "# of another owner: counter\n"},
		"a chain more": {func(c *nftables.Conn) { c.AddChain(&nftables.Chain{Name: "other", Table: table}) }, "chain other {\n"},
		"a chain elsewhere": {func(c *nftables.Conn) {
			c.AddChain(&nftables.Chain{
				Name: "input", Table: table, Type: nftables.ChainTypeFilter,
				Hooknum: nftables.ChainHookInput, Priority: nftables.ChainPriorityFilter, Policy: new(nftables.ChainPolicyDrop),
			})
		}, "# of another owner: type filter hook 1 priority 0 policy 0\n"},
		"no rule left": {func(c *nftables.Conn) { c.FlushChain(output) }, "policy accept;\n\t}\n"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := newNamespace(t)
			ours := pod.redirect(t, root, arguments()...)
			err := pod.Do(func() error {
				conn, err := nftables.New()
				if err != nil {
					return err
				}
				tc.change(conn)
				return conn.Flush()
			})
			if err != nil {
				t.Fatal(err)
			}
			r := pod.redirect(t, root, append(arguments(), "--check")...)
			if r.code != 1 || !strings.Contains(r.out, tc.want) || !strings.Contains(r.err, "differ from the wanted ones") {
				t.Errorf("%+v, want %q", r, tc.want)
			}
			pod.mustRedirect(t, arguments()...)
			pod.has(t, 0, ours.out, arguments()...)
		})
	}
}

// putToSleep does as nft with `flags dormant`. The library cannot.
func putToSleep() error {
	const dormant = 1
	conn, err := netlink.Dial(unix.NETLINK_NETFILTER, nil)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	attributes, err := netlink.MarshalAttributes([]netlink.Attribute{
		{Type: unix.NFTA_TABLE_NAME, Data: []byte("plumbline\x00")},
		{Type: unix.NFTA_TABLE_FLAGS, Data: binaryutil.BigEndian.PutUint32(dormant)},
	})
	if err != nil {
		return err
	}
	message := func(kind int, flags netlink.HeaderFlags, data ...byte) netlink.Message {
		return netlink.Message{Header: netlink.Header{Type: netlink.HeaderType(kind), Flags: netlink.Request | flags}, Data: data}
	}
	_, err = conn.SendMessages([]netlink.Message{
		message(unix.NFNL_MSG_BATCH_BEGIN, 0, 0, 0, 0, unix.NFNL_SUBSYS_NFTABLES),
		message(unix.NFNL_SUBSYS_NFTABLES<<8|unix.NFT_MSG_NEWTABLE, netlink.Acknowledge, append([]byte{unix.NFPROTO_INET, 0, 0, 0}, attributes...)...),
		message(unix.NFNL_MSG_BATCH_END, 0, 0, 0, 0, unix.NFNL_SUBSYS_NFTABLES),
	})
	if err != nil {
		return err
	}
	_, err = conn.Receive()
	return err
}

func TestATableThatWasPutToSleepIsSeenAndWoken(t *testing.T) {
	w := newWorld(t)
	w.pod.mustRedirect(t, arguments()...)
	if err := w.pod.Do(putToSleep); err != nil {
		t.Fatal(err)
	}
	w.visits(t, map[string]visit{"asleep": {someone, "tcp", "198.51.100.1:80", "outside 198.51.100.1:80"}})
	r := w.pod.redirect(t, root, append(arguments(), "--check")...)
	if want := "# of another owner: flags of the table\n"; r.code != 1 || !strings.Contains(r.out, want) {
		t.Errorf("%+v, want %q", r, want)
	}
	w.pod.mustRedirect(t, arguments()...)
	w.visits(t, map[string]visit{"awake": {someone, "tcp", "198.51.100.1:80", "captured 198.51.100.1:80"}})
}
