#!/usr/bin/perl
# What SNT_VK_PORTABLE promises: SPIRV-Cross translates the kernels of such a device to MSL and HLSL. The mask is the one that attaching with the
# flag applies (door/door_device.c). Output: TAP.
use strict;
use warnings;
use Test::More;
use FindBin;
use lib $FindBin::Bin;
use Sinter;
if (system('command -v spirv-cross >/dev/null 2>&1') != 0) {
  print "1..0 # SKIP spirv-cross is not installed\n";
  exit 0;
}
my ($mask) = `cat door/door_device.c` =~ /portable\[\] = "([^"]+)"/;
ok($mask, 'the flag has a mask') or BAIL_OUT('door/door_device.c has no mask for SNT_VK_PORTABLE');

open my $out, '>', "$dir/post.snt" or die $!;
print $out <<'END';
symbols { h: min=1 max=4320 multiple_of=1 hint=1080, w: min=1 max=7680 multiple_of=1 hint=1920 }
graph @post(%lit: f32[3,h,w], %exposure: f32[]) {
  %e: f32[3,h,w] = broadcast %exposure, axes=[], shape=[3,h,w]
  %x = mul %lit, %e
  %d = add %x, 1.0
  %tone = div %x, %d
  %shown = sqrt %tone
  return shown=%shown
}
END
close $out;

my %kernels = (msl => 0, hlsl => 0);
sub translate {
  my ($name, $model, $options) = @_;
  my $said = `$build/sinter compile $model --target spirv $options --mask $mask -o $dir/$name 2>&1`;
  return diag("$model: $said") && "$name: not compiled" if $?;
  my @bad;
  my @modules = glob "$dir/$name/*.spv";
  return "$name: no module" if !@modules;
  for my $module (@modules) {
    for my $way (['msl', '--msl --msl-version 20100'], ['hlsl', '--hlsl --shader-model 60']) {
      my $text = `spirv-cross $module $way->[1] 2>&1`;
      if ($? || $text !~ /main/) { push @bad, "$module to $way->[0]"; diag("$module to $way->[0]: $text") }
      else { $kernels{$way->[0]}++ }
    }
  }
  return join ' ', @bad;
}

for my $profile ('igpu', 'dgpu', 'mobile') {
  my @bad = grep { $_ } map { translate("$profile-" . s{.*/}{}r =~ s/\W/_/gr, $_, "--profile $profile") }
    sort(glob 'tests/patterns/*.snt'), 'examples/postprocess.snt', "$dir/post.snt";
  is("@bad", '', "every kernel for $profile is translated to MSL and to HLSL");
}
is(translate('images', "$dir/post.snt", '--profile dgpu --image lit=chw --image shown=chw'), '', 'image ports, too');
is(translate('filtered', "$dir/post.snt", '--profile dgpu --image lit=chw,filtered --image shown=chw'), '', 'and filtered ones');
cmp_ok($kernels{msl}, '>', 100, "$kernels{msl} kernels");
is($kernels{hlsl}, $kernels{msl}, 'the same to both');
done_testing();
