package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/vishvananda/netlink"

	"github.com/strictarp/strictarp/arpcheck"
)

// EditProxies changes kube-proxy's text as somebody with an editor would, and
// restarts nothing.
func (c *Cluster) EditProxies(ctx context.Context, edit func(string) string) error {
	maps := c.API.CoreV1().ConfigMaps("kube-system")
	cm, err := maps.Get(ctx, "kube-proxy", metav1.GetOptions{})
	if err != nil {
		return err
	}
	cm.Data["config.conf"] = edit(cm.Data["config.conf"])
	_, err = maps.Update(ctx, cm, metav1.UpdateOptions{FieldManager: "kubectl-edit"})
	return err
}

// RestartProxies restarts all kube-proxies, as kubectl rollout restart does, and
// returns once they run.
func (c *Cluster) RestartProxies(ctx context.Context) error {
	return c.restart(ctx, "kube-system", "kube-proxy")
}

// RestartSpeakers restarts all speakers likewise.
func (c *Cluster) RestartSpeakers(ctx context.Context) error {
	return c.restart(ctx, metalLB, "speaker")
}

func (c *Cluster) restart(ctx context.Context, namespace, name string) error {
	sets := c.API.AppsV1().DaemonSets(namespace)
	patch := fmt.Sprintf(`{"spec":{"template":{"metadata":{"annotations":{"kubectl.kubernetes.io/restartedAt":%q}}}}}`, time.Now().Format(time.RFC3339Nano))
	if _, err := sets.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return err
	}
	return Await(ctx, "the rollout of "+name, func(ctx context.Context) error {
		ds, err := sets.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if s := ds.Status; s.ObservedGeneration != ds.Generation || s.UpdatedNumberScheduled != s.DesiredNumberScheduled || s.NumberAvailable != s.DesiredNumberScheduled {
			return fmt.Errorf("%d of %d pods are new", s.UpdatedNumberScheduled, s.DesiredNumberScheduled)
		}
		return nil
	})
}

// ReportSpeakerDown says in its pod's status that a node's speaker is not ready, as
// the kubelet does a moment after it has ended.
func (c *Cluster) ReportSpeakerDown(ctx context.Context, node string) error {
	pods := c.API.CoreV1().Pods(metalLB)
	list, err := pods.List(ctx, metav1.ListOptions{LabelSelector: "component=speaker"})
	if err != nil {
		return err
	}
	for _, pod := range list.Items {
		if pod.Spec.NodeName != node {
			continue
		}
		for i := range pod.Status.Conditions {
			if t := pod.Status.Conditions[i].Type; t == corev1.PodReady || t == corev1.ContainersReady {
				pod.Status.Conditions[i].Status = corev1.ConditionFalse
			}
		}
		for i := range pod.Status.ContainerStatuses {
			pod.Status.ContainerStatuses[i].Ready = false
			pod.Status.ContainerStatuses[i].State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		}
		_, err := pods.UpdateStatus(ctx, &pod, metav1.UpdateOptions{})
		return err
	}
	return fmt.Errorf("there is no speaker's pod on %s: %w", node, fs.ErrNotExist)
}

// KillSpeaker kills a node's speaker; its pod and what it reported stay, as they do
// until somebody notices.
func (c *Cluster) KillSpeaker(node string) error {
	_, speaker := c.node(node).processes()
	return speaker.Kill()
}

// Answers probes for the VIP once from the client and returns the answers to each
// request by who sent them: a node, or a MAC.
func (c *Cluster) Answers(ctx context.Context) (map[string]int, error) {
	v, err := c.Client.vantage(ctx)
	if err != nil {
		return nil, err
	}
	answers := map[string]int{}
	for _, r := range v.Probes[0].Responders {
		name, err := c.owner(r.MAC)
		if err != nil {
			return nil, err
		}
		answers[name] = r.Replies
	}
	return answers, nil
}

func (c *Cluster) owner(mac arpcheck.MAC) (string, error) {
	for _, n := range c.Nodes {
		own, err := n.MAC()
		if err != nil {
			return "", err
		}
		if own == mac {
			return n.Name, nil
		}
	}
	return mac.String(), nil
}

// MAC returns the MAC of the host's interface on the segment.
func (h *Host) MAC() (mac arpcheck.MAC, err error) {
	err = h.NS.Do(func() error {
		link, err := netlink.LinkByName(NIC)
		if err == nil {
			copy(mac[:], link.Attrs().HardwareAddr)
		}
		return err
	})
	return mac, err
}

// Get asks the Service at its VIP, from a host, by a new connection.
func (h *Host) Get(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 4*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+VIP.String(), nil)
	if err != nil {
		return "", err
	}
	resp, err := h.HTTP().Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
	return string(text), err
}

// Learn gives the host's cache the MAC of a node for the VIP, as the answer that
// came first does.
func (h *Host) Learn(node *Node) error {
	mac, err := node.MAC()
	if err != nil {
		return err
	}
	return h.NS.Do(func() error {
		link, err := netlink.LinkByName(NIC)
		if err != nil {
			return err
		}
		return netlink.NeighSet(&netlink.Neigh{
			LinkIndex: link.Attrs().Index, Family: netlink.FAMILY_V4, State: netlink.NUD_REACHABLE, IP: VIP.AsSlice(), HardwareAddr: mac[:],
		})
	})
}

// AskInTheNameOfVIP has a node's kernel ask for the client's MAC on behalf of a
// packet whose source is the VIP.
func (n *Node) AskInTheNameOfVIP(client netip.Addr) error {
	cache, err := n.Neighbours()
	if err != nil {
		return err
	}
	err = cache.Forget(NIC, client)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err := errors.Join(err, cache.Close()); err != nil {
		return err
	}
	return n.NS.Do(func() error {
		conn, err := net.DialUDP("udp4", net.UDPAddrFromAddrPort(netip.AddrPortFrom(VIP, 0)), net.UDPAddrFromAddrPort(netip.AddrPortFrom(client, 9)))
		if err != nil {
			return err
		}
		_, err = conn.Write([]byte("x"))
		return errors.Join(err, conn.Close())
	})
}

// AddBridgePort gives a node a bridge that leads nowhere, with one port.
func (n *Node) AddBridgePort(bridge, port string) error {
	return n.NS.Do(func() error {
		br := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: bridge}}
		if err := netlink.LinkAdd(br); err != nil {
			return err
		}
		pair := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: port, MasterIndex: br.Attrs().Index}, PeerName: port + "-far"}
		if err := netlink.LinkAdd(pair); err != nil {
			return err
		}
		for _, name := range []string{bridge, port, port + "-far"} {
			link, err := netlink.LinkByName(name)
			if err != nil {
				return err
			}
			if err := netlink.LinkSetUp(link); err != nil {
				return err
			}
		}
		return nil
	})
}

// DeleteLink removes an interface.
func (h *Host) DeleteLink(name string) error {
	return h.NS.Do(func() error {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		return netlink.LinkDel(link)
	})
}

// Label sets a label of a node, or removes it if value is nil.
func (c *Cluster) Label(ctx context.Context, node, label string, value *string) error {
	text := "null"
	if value != nil {
		text = fmt.Sprintf("%q", *value)
	}
	_, err := c.API.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, label, text), metav1.PatchOptions{})
	return err
}

// AnnounceOn sets the interfaces that the L2Advertisement names.
func (c *Cluster) AnnounceOn(ctx context.Context, links string) error {
	_, err := c.MetalLB("l2advertisements").Patch(ctx, "web", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"interfaces":%s}}`, links), metav1.PatchOptions{})
	return err
}

// Serve says whether the Service's endpoint is ready.
func (c *Cluster) Serve(ctx context.Context, ready bool) error {
	slices := c.API.DiscoveryV1().EndpointSlices(corev1.NamespaceDefault)
	slice, err := slices.Get(ctx, "web-1", metav1.GetOptions{})
	if err != nil {
		return err
	}
	slice.Endpoints[0].Conditions.Ready, slice.Endpoints[0].Conditions.Serving = &ready, &ready
	_, err = slices.Update(ctx, slice, metav1.UpdateOptions{})
	return err
}
