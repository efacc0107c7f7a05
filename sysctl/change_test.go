package sysctl_test

import (
	"context"
	"errors"
	"io/fs"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/strictarp/strictarp/sysctl"
	"github.com/strictarp/strictarp/sysctl/sysctltest"
)

const (
	allIgnore   = sysctl.Key("net/ipv4/conf/all/arp_ignore")
	allAnnounce = sysctl.Key("net/ipv4/conf/all/arp_announce")
	allForward  = sysctl.Key("net/ipv4/conf/all/forwarding")
)

func strict() []sysctl.Change {
	return []sysctl.Change{{Key: allIgnore, From: "0", To: "1"}, {Key: allAnnounce, From: "0", To: "2"}}
}

func get(t *testing.T, tree sysctl.Tree, k sysctl.Key) string {
	t.Helper()
	value, err := tree.Get(k)
	require.NoError(t, err)
	return value
}

func TestApplyAndRestore(t *testing.T) {
	t.Parallel()
	k := sysctltest.New("eth0")
	undo, err := sysctl.Apply(t.Context(), k.Tree(), strict())
	require.NoError(t, err)
	assert.Equal(t, []sysctl.Change{{Key: allAnnounce, From: "2", To: "0"}, {Key: allIgnore, From: "1", To: "0"}}, undo, "last first")
	assert.Equal(t, "1", get(t, k.Tree(), allIgnore))
	again, err := sysctl.Apply(t.Context(), k.Tree(), strict())
	require.NoError(t, err)
	assert.Empty(t, again, "it is there already: nothing to take back")
	assert.Len(t, k.Writes(), 2)
	require.NoError(t, sysctl.Restore(t.Context(), k.Tree(), undo))
	assert.Equal(t, "0", get(t, k.Tree(), allIgnore))
	assert.Equal(t, "0", get(t, k.Tree(), allAnnounce))
	assert.Equal(t, "net.ipv4.conf.all.arp_ignore=1", strict()[0].String())
	assert.Equal(t, undo[1], strict()[0].Inverse())
}

func TestApplyStopsAtAnError(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prepare func(*sysctltest.Kernel)
		want    error
	}{
		"not permitted": {func(k *sysctltest.Kernel) { k.FailWrite(allAnnounce, syscall.EACCES) }, fs.ErrPermission},
		"not readable":  {func(k *sysctltest.Kernel) { k.FailRead(allAnnounce, syscall.EIO) }, syscall.EIO},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := sysctltest.New("eth0")
			tt.prepare(k)
			undo, err := sysctl.Apply(t.Context(), k.Tree(), strict())
			require.ErrorIs(t, err, tt.want)
			assert.Equal(t, []sysctl.Change{{Key: allIgnore, From: "1", To: "0"}}, undo, "what was done is told all the same")
			require.NoError(t, sysctl.Restore(t.Context(), k.Tree(), undo))
			assert.Equal(t, "0", get(t, k.Tree(), allIgnore))
		})
	}
}

func TestApplyFindsAConflict(t *testing.T) {
	t.Parallel()
	k := sysctltest.New("eth0")
	require.NoError(t, k.Tree().Set(allAnnounce, "1"))
	undo, err := sysctl.Apply(t.Context(), k.Tree(), strict())
	var conflict *sysctl.ConflictError
	require.ErrorAs(t, err, &conflict)
	assert.Equal(t, "1", conflict.Found)
	assert.Equal(t, strict()[1], conflict.Change)
	assert.ErrorContains(t, err, `net/ipv4/conf/all/arp_announce from "0" to "2": found "1"`)
	assert.Equal(t, "1", get(t, k.Tree(), allAnnounce), "left alone")
	assert.Len(t, undo, 1)
}

func TestApplyHonoursContext(t *testing.T) {
	t.Parallel()
	k := sysctltest.New("eth0")
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	undo, err := sysctl.Apply(ctx, k.Tree(), strict())
	require.ErrorIs(t, err, why)
	assert.Empty(t, undo)
	assert.ErrorIs(t, sysctl.Restore(ctx, k.Tree(), strict()), why)
	assert.Empty(t, k.Writes())
}

func TestUndoOfAValueThatWasNotKept(t *testing.T) {
	t.Parallel()
	m := mapFS(string(allIgnore), "0\n")
	tree := sysctl.At(fake{m, nil, func(string) string { return "5\n" }})
	undo, err := sysctl.Apply(t.Context(), tree, strict())
	require.ErrorIs(t, err, sysctl.ErrNotKept)
	assert.Equal(t, []sysctl.Change{{Key: allIgnore, From: "5", To: "0"}}, undo)
}

func TestRestoreGoesOn(t *testing.T) {
	t.Parallel()
	k := sysctltest.New("eth0", "eth1")
	set := func(iface string, from, to string) sysctl.Change {
		return sysctl.Change{Key: sysctl.Key("net/ipv4/conf/" + iface + "/arp_ignore"), From: from, To: to}
	}
	undo, err := sysctl.Apply(t.Context(), k.Tree(), []sysctl.Change{set("all", "0", "1"), set("eth0", "0", "2"), set("eth1", "0", "2")})
	require.NoError(t, err)
	k.RemoveInterface("eth1")
	require.NoError(t, k.Tree().Set("net/ipv4/conf/eth0/arp_ignore", "8"))
	err = sysctl.Restore(t.Context(), k.Tree(), undo)
	var conflict *sysctl.ConflictError
	require.ErrorAs(t, err, &conflict)
	assert.Equal(t, "8", conflict.Found)
	assert.NotErrorIs(t, err, fs.ErrNotExist, "an interface that is gone is no error")
	assert.Equal(t, "0", get(t, k.Tree(), allIgnore))
}

// Forwarding of "all" overwrites what each interface has: the undo brings that back.
func TestUndoOfForwarding(t *testing.T) {
	t.Parallel()
	for _, name := range []sysctl.Key{allForward, "net/ipv4/ip_forward"} {
		k := sysctltest.New("eth0", "eth1")
		const eth0, redirects = sysctl.Key("net/ipv4/conf/eth0/forwarding"), sysctl.Key("net/ipv4/conf/all/accept_redirects")
		require.NoError(t, k.Tree().Set(eth0, "1"))
		require.NoError(t, k.Tree().Set(redirects, "0"))
		undo, err := sysctl.Apply(t.Context(), k.Tree(), []sysctl.Change{{Key: name, From: "0", To: "1"}})
		require.NoError(t, err)
		require.NoError(t, sysctl.Restore(t.Context(), k.Tree(), undo))
		for key, want := range map[sysctl.Key]string{allForward: "0", eth0: "1", "net/ipv4/conf/eth1/forwarding": "0", redirects: "0"} {
			assert.Equal(t, want, get(t, k.Tree(), key), key)
		}
	}
}

// Whatever the values were: after Strict no interface answers for what others
// hold, what was strict is as before, and the undo brings all of it back.
func TestStrictNeverLoosens(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		k := sysctltest.New("eth0", "eth0.100", sysctl.KubeIPVS0)
		value := rapid.SampledFrom([]string{"-1", "0", "1", "2", "3", "4", "7", "8", "9", "2147483647"})
		for range rapid.IntRange(0, 12).Draw(t, "writes") {
			iface := rapid.SampledFrom([]string{"all", "default", "lo", "eth0", "eth0.100", sysctl.KubeIPVS0}).Draw(t, "iface")
			p := rapid.SampledFrom([]sysctl.Param{sysctl.ARPIgnore, sysctl.ARPAnnounce}).Draw(t, "param")
			if err := k.Tree().Set(sysctl.Key("net/ipv4/conf/"+iface+"/"+string(p)), value.Draw(t, "value")); err != nil {
				t.Fatal(err)
			}
		}
		before, err := sysctl.ReadARP(k.Tree())
		if err != nil {
			t.Fatal(err)
		}
		undo, err := sysctl.Apply(context.Background(), k.Tree(), before.Strict())
		if err != nil {
			t.Fatal(err)
		}
		k.AddInterface("later")
		after, _ := sysctl.ReadARP(k.Tree())
		for _, p := range []sysctl.Param{sysctl.ARPIgnore, sysctl.ARPAnnounce} {
			for _, name := range []string{"eth0", "eth0.100", "later"} {
				is, _ := after.Effective(name, p)
				if !p.IsStrict(is.Value) {
					t.Fatalf("%s of %s is %d", p, name, is.Value)
				}
				if was, err := before.Effective(name, p); err == nil && p.IsStrict(was.Value) && was.Value != is.Value {
					t.Fatalf("%s of %s was %d and strict, and is %d", p, name, was.Value, is.Value)
				}
			}
		}
		if len(after.Strict()) > 0 {
			t.Fatalf("not done at once: %v", after.Strict())
		}
		k.RemoveInterface("later")
		if err := sysctl.Restore(context.Background(), k.Tree(), undo); err != nil {
			t.Fatal(err)
		}
		if restored, _ := sysctl.ReadARP(k.Tree()); !assert.ObjectsAreEqual(before, restored) {
			t.Fatalf("%v became %v", before, restored)
		}
	})
}

func TestStrict(t *testing.T) {
	t.Parallel()
	values := func(ignore, announce int) sysctl.Values {
		return sysctl.Values{sysctl.ARPIgnore: ignore, sysctl.ARPAnnounce: announce}
	}
	for name, tt := range map[string]struct {
		a    sysctl.ARP
		want []string
	}{
		"loose":        {sysctl.ARP{All: values(0, 0), Interfaces: map[string]sysctl.Values{"eth0": values(0, 0)}}, []string{"all.arp_ignore=1", "all.arp_announce=2"}},
		"strict":       {sysctl.ARP{All: values(1, 2), Interfaces: map[string]sysctl.Values{"eth0": values(0, 0)}}, nil},
		"stricter":     {sysctl.ARP{All: values(2, 2), Interfaces: map[string]sysctl.Values{"eth0": values(8, 1)}}, nil},
		"silent":       {sysctl.ARP{All: values(8, 2), Interfaces: map[string]sysctl.Values{"eth0": values(3, 0)}}, nil},
		"by interface": {sysctl.ARP{All: values(0, 2), Interfaces: map[string]sysctl.Values{"eth0": values(1, 0)}}, []string{"all.arp_ignore=1"}},
		"3 beats 1":    {sysctl.ARP{All: values(1, 2), Interfaces: map[string]sysctl.Values{"eth0.100": values(3, 0)}}, []string{"eth0/100.arp_ignore=1"}},
		"reserved": {sysctl.ARP{All: values(9, 3), Default: values(4, 5), Interfaces: map[string]sysctl.Values{"b": values(5, 7), "a": values(8, 0), "lo": values(4, 4), sysctl.KubeIPVS0: values(4, 4)}},
			[]string{"all.arp_ignore=1", "b.arp_ignore=1", "default.arp_ignore=1", "all.arp_announce=2", "b.arp_announce=2", "default.arp_announce=2"}},
		"not observed": {sysctl.ARP{All: sysctl.Values{sysctl.RPFilter: 0}, Interfaces: map[string]sysctl.Values{"eth0": values(0, 0)}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, c := range tt.a.Strict() {
				got = append(got, c.String()[len("net.ipv4.conf."):])
			}
			assert.Equal(t, tt.want, got)
		})
	}
	assert.Len(t, sysctl.ARP{All: values(1, 2), Interfaces: map[string]sysctl.Values{"vips0": values(4, 2)}}.Strict("vips0"), 0, "a holder of another name")
}
