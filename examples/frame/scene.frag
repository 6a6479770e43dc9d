#version 450
/* The scene: four balls, one of them a lamp far brighter than white, that circle over a chequered floor under an evening sky. Linear light. */
layout(location = 0) out vec4 color;
layout(push_constant) uniform Frame { vec2 size; float time; } frame;

const int BALLS = 4;
vec4 balls[BALLS];   /* centre, radius */
vec3 tints[BALLS];

float hit_ball(vec3 from, vec3 way, vec4 ball) {
  vec3 o = from - ball.xyz;
  float b = dot(o, way), d = b * b - dot(o, o) + ball.w * ball.w;
  if (d < 0.0) return -1.0;
  float t = -b - sqrt(d);
  return t > 0.001 ? t : -1.0;
}

vec3 sky(vec3 way) { return mix(vec3(0.9, 0.45, 0.25), vec3(0.1, 0.2, 0.5), smoothstep(-0.05, 0.6, way.y)) * 0.7; }

/* The nearest thing: what it is (-2 sky, -1 floor, else a ball) and how far. */
int trace(vec3 from, vec3 way, out float far) {
  int what = -2;
  far = 1e9;
  if (way.y < -1e-4 && from.y / -way.y < 40.0) { far = from.y / -way.y; what = -1; }
  for (int i = 0; i < BALLS; i++) {
    float t = hit_ball(from, way, balls[i]);
    if (t > 0.0 && t < far) { far = t; what = i; }
  }
  return what;
}

vec3 shade(vec3 from, vec3 way, out vec3 at, out vec3 normal, out float shine) {
  float far;
  int what = trace(from, way, far);
  at = from + way * far;
  normal = vec3(0.0, 1.0, 0.0);
  shine = 0.0;
  if (what == -2) return sky(way);
  if (what == 0) return tints[0];
  vec3 tint = mix(vec3(0.12), vec3(0.75), mod(floor(at.x) + floor(at.z), 2.0));
  shine = 0.15;
  if (what > 0) { normal = normalize(at - balls[what].xyz); tint = tints[what]; shine = 0.35; }
  vec3 to_lamp = balls[0].xyz - at, l = normalize(to_lamp);
  float reach = length(to_lamp), between;
  int blocker = trace(at + normal * 0.002, l, between);
  float lit = blocker > 0 && between < reach ? 0.0 : max(dot(normal, l), 0.0) * 9.0 / (1.0 + reach * reach);
  return tint * (lit * tints[0] / 6.0 + sky(normal) * 0.6);
}

void main() {
  float a = frame.time;
  balls[0] = vec4(1.6 * cos(a), 1.7 + 0.3 * sin(2.0 * a), 1.6 * sin(a), 0.28);
  balls[1] = vec4(1.5 * cos(a * 0.5 + 2.1), 0.7, 1.5 * sin(a * 0.5 + 2.1), 0.7);
  balls[2] = vec4(1.5 * cos(a * 0.5 + 4.2), 0.5, 1.5 * sin(a * 0.5 + 4.2), 0.5);
  balls[3] = vec4(1.5 * cos(a * 0.5), 0.6, 1.5 * sin(a * 0.5), 0.6);
  tints[0] = vec3(9.0, 7.0, 4.0);
  tints[1] = vec3(0.8, 0.15, 0.1);
  tints[2] = vec3(0.1, 0.6, 0.25);
  tints[3] = vec3(0.15, 0.3, 0.9);
  vec2 p = (2.0 * gl_FragCoord.xy - frame.size) / frame.size.y;
  vec3 from = vec3(0.0, 1.6, -5.0), way = normalize(vec3(p.x, -p.y - 0.15, 1.9)), at, normal, light;
  float shine, unused;
  light = shade(from, way, at, normal, shine);
  if (shine > 0.0) {
    vec3 at2, normal2;
    vec3 mirrored = shade(at + normal * 0.002, reflect(way, normal), at2, normal2, unused);
    light = mix(light, mirrored, shine * mix(0.3, 1.0, pow(1.0 - max(-dot(way, normal), 0.0), 3.0)));
  }
  color = vec4(light, 1.0);
}
