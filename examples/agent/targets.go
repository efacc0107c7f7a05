package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/strictarp/strictarp"
	"github.com/strictarp/strictarp/examples/internal/exchange"
)

// maxVIPs is how many addresses a file may have.
const maxVIPs = 1024

// targets are the addresses that are asked for: those of LoadBalancer Services,
// and those of a file; and all that Services have.
type targets struct {
	file string // may not exist: then there are none in it

	mu       sync.Mutex
	services map[string]addresses // by namespace/name
	bound    *exchange.Services   // what they have; nil when that has changed
	changed  func()
	synced   func() bool // of the informer; nil if Services are not read
}

// addresses are those of a Service.
type addresses struct {
	vips  []netip.Addr // that are asked for
	bound []netip.Addr // that a service proxy binds
}

// known returns what Services have; nil if they were not read.
func (t *targets) known() *exchange.Services {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.synced == nil || !t.synced() {
		return nil
	}
	if t.bound == nil {
		var addrs []netip.Addr
		for _, s := range t.services {
			addrs = append(addrs, s.bound...)
		}
		t.bound = exchange.NewServices(addrs)
	}
	return t.bound
}

// all returns the addresses that are to be asked for, each once and in order, whether
// Services are among them, and what could not be found out.
func (t *targets) all(node string) (vips []netip.Addr, known bool, missing []strictarp.Missing) {
	miss := func(what string, err error, collect string) {
		missing = append(missing, strictarp.Missing{What: what, Where: node, Err: err.Error(), Collect: collect})
	}
	if t.file != "" {
		f, err := os.Open(t.file)
		if err == nil {
			vips, err = parseVIPs(f)
			err = errors.Join(err, f.Close())
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			miss("addresses of "+t.file, err, "write one IPv4 address a line")
		}
	}
	t.mu.Lock()
	for _, s := range t.services {
		vips = append(vips, s.vips...)
	}
	t.mu.Unlock()
	if known = t.synced == nil || t.synced(); !known {
		miss("LoadBalancer Services", errors.New("they were not read yet"), "see whether the API server is reached, and allow list and watch of services")
	}
	slices.SortFunc(vips, netip.Addr.Compare)
	vips = slices.Compact(vips)
	return vips, known, missing
}

// parseVIPs reads one IPv4 address a line; # begins a comment. What stands before
// an error is returned with it.
func parseVIPs(r io.Reader) (vips []netip.Addr, err error) {
	const most = 1 << 20
	lines := bufio.NewScanner(io.LimitReader(r, most))
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		addr, err := netip.ParseAddr(text)
		if err != nil {
			return vips, fmt.Errorf("line %d: %.64q is no address", n, text)
		}
		if addr = addr.Unmap(); !askable(addr) {
			return vips, fmt.Errorf("line %d: %s is no unicast IPv4 address", n, addr)
		}
		if vips = append(vips, addr); len(vips) > maxVIPs {
			return vips, fmt.Errorf("line %d: %w: %d addresses are taken", n, strictarp.ErrLimit, maxVIPs)
		}
	}
	return vips, lines.Err()
}

// askable reports whether ARP can ask for an address.
func askable(addr netip.Addr) bool {
	return addr.Is4() && !addr.IsUnspecified() && !addr.IsLoopback() && !addr.IsMulticast() && addr != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// firstSync is how long the Services are waited for at the start; without an API
// server the agent begins all the same.
const firstSync = 10 * time.Second

// watch follows the Services until ctx is done; done waits for its goroutines then.
// Of each no more than the addresses is kept.
func (t *targets) watch(ctx context.Context, client kubernetes.Interface) (done func(), err error) {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTransform(onlyAddresses))
	informer := factory.Core().V1().Services().Informer()
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { t.put(o, false) },
		UpdateFunc: func(_, o any) { t.put(o, false) },
		DeleteFunc: func(o any) { t.put(o, true) },
	})
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.synced = informer.HasSynced
	t.mu.Unlock()
	factory.Start(ctx.Done())
	wait, cancel := context.WithTimeout(ctx, firstSync)
	defer cancel()
	cache.WaitForCacheSync(wait.Done(), informer.HasSynced)
	return factory.Shutdown, nil
}

func (t *targets) put(o any, gone bool) {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o)
	if err != nil {
		return
	}
	var now addresses
	if s, ok := o.(*corev1.Service); ok && !gone {
		now = addresses{addressesOf(s), exchange.AddressesOf(s)}
	}
	t.mu.Lock()
	old := t.services[key]
	same := slices.Equal(now.vips, old.vips)
	if !slices.Equal(now.bound, old.bound) {
		t.bound = nil
	}
	if len(now.vips)+len(now.bound) == 0 {
		delete(t.services, key)
	} else {
		if t.services == nil {
			t.services = map[string]addresses{}
		}
		t.services[key] = now
	}
	t.mu.Unlock()
	if !same && t.changed != nil {
		t.changed()
	}
}

func addressesOf(s *corev1.Service) (addrs []netip.Addr) {
	if s.Spec.Type != corev1.ServiceTypeLoadBalancer {
		return nil
	}
	for _, i := range s.Status.LoadBalancer.Ingress {
		if addr, err := netip.ParseAddr(i.IP); err == nil && askable(addr.Unmap()) {
			addrs = append(addrs, addr.Unmap())
		}
	}
	return addrs
}

// onlyAddresses is an informer's transform.
func onlyAddresses(o any) (any, error) {
	s, ok := o.(*corev1.Service)
	if !ok {
		return o, nil
	}
	small := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, UID: s.UID, ResourceVersion: s.ResourceVersion}}
	small.Spec.Type, small.Spec.ClusterIP, small.Spec.ClusterIPs, small.Spec.ExternalIPs = s.Spec.Type, s.Spec.ClusterIP, s.Spec.ClusterIPs, s.Spec.ExternalIPs
	small.Status.LoadBalancer.Ingress = s.Status.LoadBalancer.Ingress
	return small, nil
}
