package metallb

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// legacyNamespace is where MetalLB's manifests put it. It is the namespace of a
// legacy ConfigMap where no speaker shows another.
const legacyNamespace = "metallb-system"

// readConfigMaps reads MetalLB's configuration from before 0.13 and its list of
// excluded interfaces.
func (c *collector) readConfigMaps(s *State) {
	namespace := cmp.Or(s.Namespace, c.namespaceOfObjects(), legacyNamespace)
	r, known := parseRelease(s.Version)
	legacy := known && !r.atLeast(0, 13, 0) || !known && s.Pools == nil
	for _, cm := range c.configMaps {
		if cm.Namespace != namespace {
			continue
		}
		if text, ok := cm.Data["excludel2.yaml"]; ok {
			c.readExcluded(s, cm, text)
		}
		text, ok := cm.Data["config"]
		if !ok || cm.Name != legacyName(s) {
			continue
		}
		if !legacy {
			c.warn("ConfigMap %s/%s: MetalLB %s does not read it: since 0.13 pools and advertisements are objects", cm.Namespace, cm.Name, s.Version)
			continue
		}
		c.readLegacy(s, cm, text)
	}
	if legacy && known && s.Pools == nil && c.seen["ConfigMap"] {
		s.Pools, s.L2Advertisements = []Pool{}, []L2Advertisement{}
	}
}

// legacyName is the name that the speaker's --config gives, "config" without.
func legacyName(s *State) string {
	var args []string
	switch {
	case s.SpeakerSet != nil:
		args = s.SpeakerSet.Options.Args
	case len(s.Speakers) > 0:
		args = s.Speakers[0].Options.Args
	}
	name, _ := flagValue(args, "config")
	return cmp.Or(name, "config")
}

// readExcluded reads the file that parseAnnouncedInterfacesToExclude of MetalLB's
// speaker/main.go reads.
func (c *collector) readExcluded(s *State, cm *corev1.ConfigMap, text string) {
	var file struct {
		Exclude []string `json:"announcedInterfacesToExclude"`
	}
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		c.warn("ConfigMap %s/%s: read excludel2.yaml: %v", cm.Namespace, cm.Name, err)
		return
	}
	s.ExcludeInterfaces = append([]string{}, file.Exclude...)
}

func (c *collector) readLegacy(s *State, cm *corev1.ConfigMap, text string) {
	pools, err := parseLegacy(text)
	if err != nil {
		c.warn("ConfigMap %s/%s: MetalLB keeps its former configuration: read config: %v", cm.Namespace, cm.Name, err)
		return
	}
	s.Pools, s.L2Advertisements = []Pool{}, []L2Advertisement{}
	for _, pool := range pools {
		pool.Namespace, pool.Legacy, pool.BGP = cm.Namespace, true, pool.Protocol == "bgp"
		s.Pools = append(s.Pools, pool)
		if pool.Protocol == "layer2" {
			s.L2Advertisements = append(s.L2Advertisements, poolAdvertisement(pool))
		}
	}
}

// parseLegacy reads the text of the legacy ConfigMap.
func parseLegacy(text string) ([]Pool, error) {
	var file struct {
		Pools []struct {
			Name          string   `json:"name"`
			Protocol      string   `json:"protocol"`
			Addresses     []string `json:"addresses"`
			AutoAssign    *bool    `json:"auto-assign"`
			AvoidBuggyIPs bool     `json:"avoid-buggy-ips"`
		} `json:"address-pools"`
	}
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		return nil, err
	}
	pools := []Pool{}
	for i, p := range file.Pools {
		if p.Name == "" {
			return nil, fmt.Errorf("address-pools[%d] has no name", i)
		}
		if p.Protocol != "layer2" && p.Protocol != "bgp" {
			return nil, fmt.Errorf("address-pools[%d]: the protocol %q is neither layer2 nor bgp", i, p.Protocol)
		}
		pool := newPool(p.Name, p.Addresses)
		pool.Protocol, pool.AvoidBuggyIPs = p.Protocol, p.AvoidBuggyIPs
		pool.AutoAssign = p.AutoAssign == nil || *p.AutoAssign
		pools = append(pools, pool)
	}
	slices.SortStableFunc(pools, func(a, b Pool) int { return strings.Compare(a.Name, b.Name) })
	return pools, nil
}
