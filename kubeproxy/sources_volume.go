package kubeproxy

import (
	"path"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// file reads the file that --config names.
func (f *finder) file(s Source, spec *corev1.PodSpec, c *corev1.Container, line CommandLine, o ParseOptions) {
	s.Path = line.ConfigFile
	mount, rel, ok := mountOf(c, line.ConfigFile)
	if !ok {
		f.noFile(s, "the file is in no volume: it comes with the image or a script writes it; take it from a running pod or its /configz")
		return
	}
	for i := range spec.Volumes {
		if spec.Volumes[i].Name == mount {
			f.volume(s, &spec.Volumes[i], rel, line, o)
			return
		}
	}
	f.noFile(s, "volume "+clip(mount)+" does not exist")
}

// hostFile reads a file of the node, if its files are there.
func (f *finder) hostFile(s Source, line CommandLine, o ParseOptions) {
	if f.files == nil {
		f.noFile(s, "the file is on each node, at "+clip(s.Path)+": read it there or ask /configz")
		return
	}
	text, err := readNodeFile(f.files, s.Path)
	if err != nil {
		f.noFile(s, "cannot read the file that --config names: "+err.Error())
		return
	}
	c, _ := Parse(text, o) // Refused says all that an error would
	c = line.With(c)
	s.Kind = SourceFile
	c.Source = s
	f.found.Configs = append(f.found.Configs, c)
}

func (f *finder) noFile(s Source, message string) {
	s.Kind = SourceFile
	f.miss(s, "%s", message)
}

// volume finds what a volume has at a path.
func (f *finder) volume(s Source, v *corev1.Volume, rel string, line CommandLine, o ParseOptions) {
	switch {
	case v.ConfigMap != nil:
		f.configMap(s, v.ConfigMap.Name, keyOf(v.ConfigMap.Items, rel), line, o)
	case v.Projected != nil:
		f.projected(s, v, rel, line, o)
	case v.HostPath != nil:
		s.Path = path.Join(v.HostPath.Path, rel)
		f.hostFile(s, line, o)
	case v.EmptyDir != nil:
		f.noFile(s, "an init container or a sidecar writes the file: take it from a running pod or its /configz")
	case v.Secret != nil:
		f.noFile(s, "the file is in Secret "+clip(v.Secret.SecretName)+", which is not read: ask /configz")
	default:
		f.noFile(s, "volume "+clip(v.Name)+" is of a kind that cannot be read from here: ask /configz")
	}
}

// projected looks from behind: of sources that have the same path the last wins.
func (f *finder) projected(s Source, v *corev1.Volume, rel string, line CommandLine, o ParseOptions) {
	var unseen string
	for i := len(v.Projected.Sources) - 1; i >= 0; i-- {
		source := v.Projected.Sources[i].ConfigMap
		if source == nil {
			continue
		}
		key := keyOf(source.Items, rel)
		cm := f.cluster.configMaps[s.Namespace+"/"+source.Name]
		switch _, has := textOf(cm, key); {
		case key != "" && has:
			f.configMap(s, source.Name, key, line, o)
			return
		case key != "" && cm == nil:
			unseen = source.Name
		}
	}
	if unseen != "" {
		f.configMap(s, unseen, rel, line, o)
		return
	}
	f.noFile(s, "no source of the projected volume "+clip(v.Name)+" has the file")
}

// configMap reads a key of a ConfigMap.
func (f *finder) configMap(s Source, name, key string, line CommandLine, o ParseOptions) {
	id := s.Namespace + "/" + name
	f.used[id] = true
	s.Kind, s.Name, s.Key = SourceConfigMap, name, key
	cm := f.cluster.configMaps[id]
	if cm == nil {
		f.miss(s, "ConfigMap %s was not given: read it (kubectl get configmap %s -n %s -o yaml)", clip(id), clip(name), clip(s.Namespace))
		return
	}
	text, ok := textOf(cm, key)
	c := Config{Windows: o.Windows, Version: o.Version}
	if ok && key != "" {
		// Refused says all that an error would.
		c, _ = Parse([]byte(text), o)
	} else {
		c.Refused = "the volume has no file for " + clip(line.ConfigFile) + ": ConfigMap " + clip(id) + " has no such key or does not mount it"
	}
	c = line.With(c)
	c.Source, c.Changed = s, changed(cm, "f:data")
	f.found.Configs = append(f.found.Configs, c)
}

func textOf(cm *corev1.ConfigMap, key string) (string, bool) {
	if cm == nil {
		return "", false
	}
	if text, ok := cm.Data[key]; ok {
		return text, true
	}
	text, ok := cm.BinaryData[key]
	return string(text), ok
}

// keyOf is the key that a volume shows at a path; empty if it shows none.
func keyOf(items []corev1.KeyToPath, rel string) string {
	if len(items) == 0 {
		return rel
	}
	for _, item := range items {
		if path.Clean(item.Path) == rel {
			return item.Key
		}
	}
	return ""
}

// mountOf finds the volume that holds a file, and the file's path within: the
// deepest mount counts, and a subPath goes before.
func mountOf(c *corev1.Container, file string) (volume, rel string, ok bool) {
	file = cleanPath(file)
	depth := -1
	for _, m := range c.VolumeMounts {
		at := cleanPath(m.MountPath)
		inside, found := strings.CutPrefix(file, strings.TrimSuffix(at, "/"))
		if !found || (inside != "" && inside[0] != '/') || len(at) <= depth {
			continue
		}
		depth = len(at)
		volume, rel, ok = m.Name, path.Join(m.SubPath, strings.TrimPrefix(inside, "/")), true
	}
	return volume, rel, ok
}

// cleanPath takes Windows paths and those relative to the root. On Windows,
// mounts stand below $env:CONTAINER_SANDBOX_MOUNT_POINT.
func cleanPath(p string) string {
	p = strings.ReplaceAll(p, `\`, "/")
	for _, root := range []string{"$env:CONTAINER_SANDBOX_MOUNT_POINT", "%CONTAINER_SANDBOX_MOUNT_POINT%", "$(CONTAINER_SANDBOX_MOUNT_POINT)"} {
		p = strings.TrimPrefix(p, root)
	}
	if len(p) > 1 && p[1] == ':' {
		p = p[2:]
	}
	return path.Clean("/" + p)
}

// environment is what is known of a container's variables. Others stay as
// $(NAME) in its arguments, and parseFlags warns of them.
func (f *finder) environment(namespace string, c *corev1.Container) map[string]string {
	env := map[string]string{}
	for _, from := range c.EnvFrom {
		if from.ConfigMapRef == nil {
			continue
		}
		if cm := f.cluster.configMaps[namespace+"/"+from.ConfigMapRef.Name]; cm != nil {
			for key, value := range cm.Data {
				env[from.Prefix+key] = value
			}
		}
	}
	for _, e := range c.Env {
		switch {
		case e.ValueFrom == nil:
			env[e.Name] = expandKubernetes(e.Value, env)
		case e.ValueFrom.ConfigMapKeyRef != nil:
			ref := e.ValueFrom.ConfigMapKeyRef
			if text, ok := textOf(f.cluster.configMaps[namespace+"/"+ref.Name], ref.Key); ok {
				env[e.Name] = text
			}
		}
	}
	return env
}
